//go:build !e2e

package control_test

// The size of TestFleetAtScale in `make test`.
const scaleNodes, scaleKills = 20, 5

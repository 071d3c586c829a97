//go:build e2e

package control_test

// The size of TestFleetAtScale in `make e2e`.
const scaleNodes, scaleKills = 1000, 50

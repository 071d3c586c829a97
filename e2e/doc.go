// Package e2e tests swdt as its users run it: the built bin/swdt, over SSH,
// against the real agent under Wine with a real Service Control Manager, and the
// real containerd as a service. Its tests have the build tag e2e; scripts/test.sh
// prepares what they need and runs them.
//
// Each test has nodes of its own, so that they run side by side; those that measure
// time, or need ports that a machine has once, run alone.
package e2e

// Package e2e tests swdt as its users run it: the built bin/swdt, over SSH,
// against the real agent under Wine with a real Service Control Manager, and the
// real containerd as a service. Its tests have the build tag e2e; scripts/stage.sh e2e
// prepares their requirements and runs them.
//
// Each test has its own nodes, so tests run at the same time. Tests that measure time, or
// need fixed ports of the machine, run alone.
package e2e

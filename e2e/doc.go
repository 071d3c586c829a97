// Package e2e tests swdt as its users run it: the built bin/swdt, over SSH,
// against the real agent under Wine with a real Service Control Manager, and the
// real containerd as a service. Its tests have the build tag e2e; scripts/test.sh
// prepares what they need and runs them.
package e2e

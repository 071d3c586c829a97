// Package platform defines small interfaces to the Windows machine on which the agent runs, and the values that they
// exchange. The interfaces return the errors of package fault.
//
// There are two implementations. platform/windows uses Win32 calls; platform/simulated is an in-memory Windows that
// runs on every OS and fails on demand. platform/platformtest is the contract suite that both must pass. A comment
// here may state a rule that the suite does not check: such a rule is not guaranteed.
//
// Nothing here depends on RPC, SSH or the command line. Policy (ordering, waiting, retrying, editing the hosts file)
// is in the packages above, written once on these primitives.
package platform

// Platform is one Windows machine, as seen by one process that runs on it.
type Platform struct {
	Machine   Machine
	Services  Services
	Registry  Registry
	Roots     Roots
	Files     Files
	Processes Processes
	Features  Features
	Firewall  Firewall
	Network   Network
	Compute   Compute
}

// Package platform has small interfaces to the Windows machine that the agent runs on, and the
// values they exchange. The errors they return are those of package fault.
//
// There are two implementations. platform/windows uses Win32 calls; platform/simulated is an in-memory Windows with
// faults on demand that runs on every OS. platform/platformtest is the contract suite that both must pass: a rule in
// a comment here that the suite does not check is not guaranteed.
//
// Nothing here depends on RPC, SSH or the command line. Policy (ordering, waiting, retrying, editing the hosts file)
// is in the packages above, written once on these primitives.
package platform

// Platform is one Windows machine, as seen by one process that runs on it.
type Platform struct {
	Machine   Machine
	Services  Services
	Registry  Registry
	Files     Files
	Processes Processes
	Features  Features
	Firewall  Firewall
	Network   Network
	Compute   Compute
}

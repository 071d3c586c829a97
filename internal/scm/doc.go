// Package scm starts and stops Windows services to the end: where the Service
// Control Manager only accepts a request, this package waits until it has come
// true. It is written once over host.Services and host.Processes, for the
// agent's service calls and for the swap transaction alike.
//
// Two rules make it more than a loop:
//
//   - A service that the SCM calls stopped may still have a process, and that
//     process still has its executable open. Stopped here means that the process
//     is gone. (Not for services that share a process with others.)
//   - Services that depend on one another are stopped in the order in which
//     Windows allows it: dependents before what they depend on.
package scm

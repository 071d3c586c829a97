// Package scm starts and stops Windows services completely: the Service Control
// Manager only accepts a request, and this package waits until it is done. It
// is written once over platform.Services and platform.Processes, for both the
// agent's service calls and the swap transaction.
//
// Two rules go beyond a simple loop:
//
//   - A service that the SCM reports as stopped may still have a process, and that
//     process still has its executable open. Stopped here means that the process
//     has ended. (Not for services that share a process with others.)
//   - Services that depend on one another are stopped in the order in which
//     Windows allows it: dependents before what they depend on.
package scm

// Package scm starts and stops Windows services completely: the Service Control
// Manager (SCM) only accepts a request, and this package waits until the request
// has been carried out. It depends only on platform.Services and
// platform.Processes, so that the agent's service calls and the swap transaction
// share it.
//
// Two rules go beyond a simple loop:
//
//   - A service that the SCM reports as stopped may still have a process, and that
//     process still has its executable open. In this package, a service is stopped
//     when its process has ended too. (Services that share a process are excepted.)
//   - Services are stopped in the order in which Windows allows it: a service is
//     stopped after all services that depend on it.
package scm

// Package netprobe is the program swdt-probe, which "swdt netpol" and "swdt readiness" run in pods. It serves
// ports, reports which ports of other pods it reaches, and uses CPU time and memory on request.
//
//   - wire.go: the messages on stdin and stdout
//   - probe.go: the loop that obeys them
//   - serve.go: the servers of a pod
//   - dial.go: attempts to reach the servers of other pods
//   - load.go, cpu_windows.go, cpu_other.go: CPU time and memory that the probe uses on request
//
// The program reads requests from stdin, one JSON document a line, and answers each with one line on
// stdout. It ends with its stdin, and so with the swdt that started it. It writes no file and runs no
// program. It uses only Go's standard library and golang.org/x/sys, so it is small enough to be sent to
// each pod.
package netprobe

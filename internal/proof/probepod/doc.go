// Package probepod runs swdt-probe in a pod: it copies the program into a folder of the pod, starts it by
// exec, and speaks with it.
//
//   - upload.go: the copy, and the place of the program in a pod
//   - session.go: a probe that runs, its requests and its answers
//
// Package netprobe is the program itself, and package probebin has its builds.
package probepod

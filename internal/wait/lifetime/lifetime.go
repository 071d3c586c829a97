// Package lifetime sets whether a program that swdt starts may outlive it.
//
//   - outlive_unix.go, outlive_windows.go: the program outlives swdt and its terminal
//   - end_linux.go, end_other.go: the program ends with swdt
package lifetime

//go:build windows

package main

import "os"

// Faults that tests plant: the shim has one if the file exists when it starts a container.
const (
	unlimited = `C:\lab\unlimited` // limits do not bind
	mortal    = `C:\lab\mortal`    // containers end when containerd does

	// These requests never return; a shim has such a fault if the file exists when the request comes.
	hungCreate = `C:\lab\hung-create`
	hungKill   = `C:\lab\hung-kill`
	hungStart  = `C:\lab\hung-start`
	hungDelete = `C:\lab\hung-delete`

	silent = `C:\lab\silent` // the question for its goroutines never returns
	canned = `C:\lab\canned` // the answer to this question is the content of the file
)

func planted(fault string) bool {
	_, err := os.Stat(fault)
	return err == nil
}

// hang never returns if a fault is planted.
func hang(fault string) {
	if planted(fault) {
		select {}
	}
}

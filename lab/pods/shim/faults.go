//go:build windows

package main

import "os"

// Faults that tests plant: the shim has one if the file exists when it starts a container.
const (
	unlimited = `C:\lab\unlimited` // limits do not bind
	mortal    = `C:\lab\mortal`    // containers end when containerd does
)

func planted(fault string) bool {
	_, err := os.Stat(fault)
	return err == nil
}

//go:build windows && lab

package main

import "golang.org/x/sys/windows"

// setHost sets the version of Windows that containerd reads. lab/build.sh builds the program with a copy of golang.org/x/sys in
// which LabVersion replaces what Windows reports; containerd's own code is as published.
func setHost(version [3]uint32) error {
	windows.LabVersion = version
	return nil
}

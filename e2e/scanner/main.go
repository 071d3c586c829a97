//go:build windows

// Command scanner holds a file as virus scanners do: others may read it, not rename, remove or write it.
//
//	scanner SECONDS PATH   opens the file, prints "scanning", and closes it after that time
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/windows"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: scanner SECONDS PATH")
		os.Exit(2)
	}
	if err := hold(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "scanner:", err)
		os.Exit(1)
	}
}

func hold(seconds, path string) error {
	n, err := strconv.Atoi(seconds)
	if err != nil {
		return err
	}
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	handle, err := windows.CreateFile(path16, windows.GENERIC_READ, windows.FILE_SHARE_READ, nil, windows.OPEN_EXISTING,
		windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return err
	}
	fmt.Println("scanning")
	timer := time.NewTimer(time.Duration(n) * time.Second)
	<-timer.C
	return windows.CloseHandle(handle)
}

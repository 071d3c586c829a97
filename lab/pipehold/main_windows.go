// Command pipehold makes a named-pipe server usable under Wine 8, where the first
// instance of a go-winio pipe accepts a client that the server never sees: it
// takes that first place and holds it for as long as the server lives, then
// waits for the next server on the same pipe.
//
//	pipehold.exe \\.\pipe\containerd-containerd \\.\pipe\containerd-containerd.ttrpc
//
// It runs until it is ended; it is also the process that keeps a Wine prefix,
// and with it the services in it, alive.
package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// interval bounds how long after a server's start its first client may hang.
const interval = 5 * time.Millisecond

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, `usage: pipehold \\.\pipe\NAME…`)
		os.Exit(2)
	}
	for _, pipe := range os.Args[1:] {
		go hold(pipe)
	}
	fmt.Println("holding")
	select {}
}

// hold takes the first place of each server that appears on the pipe.
func hold(pipe string) {
	name, err := windows.UTF16PtrFromString(pipe)
	if err != nil {
		fmt.Fprintf(os.Stderr, "pipehold: %s: %v\n", pipe, err)
		os.Exit(2)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range tick.C {
		handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil,
			windows.OPEN_EXISTING, windows.FILE_FLAG_OVERLAPPED, 0)
		if err != nil {
			continue
		}
		fmt.Printf("holding %s\n", pipe)
		waitForServer(handle, tick.C)
		windows.CloseHandle(handle)
		fmt.Printf("released %s\n", pipe)
	}
}

// waitForServer returns when the pipe's other end is gone.
func waitForServer(handle windows.Handle, tick <-chan time.Time) {
	for range tick {
		if err := peek(handle); err != nil {
			return
		}
	}
}

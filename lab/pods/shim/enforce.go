//go:build windows

package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// tick is the time between two looks at what the processes of a container use.
const tick = 10 * time.Millisecond

// enforce holds the processes of the job to its limits until ended is closed. Wine's job objects have no limits, so
// enforce suspends the processes for as long as they have used too much CPU time, and ends the process with the most
// memory if all of them have too much.
func (j *job) enforce(l limits, ended <-chan struct{}) {
	b, before, last := budget{cores: l.cores}, usage{}, time.Now()
	var paused []windows.Handle
	resume := func() {
		for _, p := range paused {
			change(p, "NtResumeProcess")
			_ = windows.CloseHandle(p)
		}
		paused = nil
	}
	defer resume()
	for looks := time.NewTicker(tick); ; {
		select {
		case <-ended:
			looks.Stop()
			return
		case <-looks.C:
		}
		used, err := j.usage()
		if err != nil {
			fmt.Fprintln(os.Stderr, "containerd-shim-lab-v1:", err)
			continue
		}
		now := time.Now()
		spent := time.Duration(used.user+used.kernel-before.user-before.kernel) * 100 // of 100 ns
		pause := l.cores > 0 && b.spend(spent, now.Sub(last))
		before, last = used, now
		if l.memory > 0 && used.workingSet > l.memory {
			j.endLargest()
		}
		switch {
		case !pause:
			resume()
		case paused == nil:
			paused = j.suspend()
		}
	}
}

// suspend suspends all processes of the job, and returns their handles.
func (j *job) suspend() (paused []windows.Handle) {
	pids, _ := j.pids() // without them there is nothing to suspend
	for _, pid := range pids {
		const suspendResume = 0x0800 // PROCESS_SUSPEND_RESUME
		p, err := windows.OpenProcess(suspendResume, false, pid)
		if err != nil {
			continue // it has ended
		}
		change(p, "NtSuspendProcess")
		paused = append(paused, p)
	}
	return paused
}

// change calls a function of ntdll with a process, which may have ended.
func change(p windows.Handle, function string) {
	_, _, _ = windows.NewLazySystemDLL("ntdll.dll").NewProc(function).Call(uintptr(p))
}

// endLargest ends the process of the job that has the most memory.
func (j *job) endLargest() {
	j.mu.Lock()
	largest, most := uint32(0), uint64(0)
	for pid, used := range j.last {
		if used.workingSet > most {
			largest, most = pid, used.workingSet
		}
	}
	j.mu.Unlock()
	p, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, largest)
	if err != nil {
		return // it has ended
	}
	defer windows.CloseHandle(p)
	_ = windows.TerminateProcess(p, killed)
}

//go:build windows

package main

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// job is a Windows job object. Under Wine, the accounting of a job object is all zero, so usage
// asks the system for the CPU time of each process and adds up the times.
type job struct {
	handle windows.Handle

	mu   sync.Mutex
	last map[uint32]usage // of each process at the last sample
	gone usage            // of processes that have ended, at their last sample
}

// usage is the CPU time and memory that processes used; times in units of 100 ns.
type usage struct {
	user, kernel       uint64
	workingSet, commit uint64
}

func newJob() (*job, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a job object: %w", err)
	}
	return &job{handle: handle, last: map[uint32]usage{}}, nil
}

func (j *job) close() { _ = windows.CloseHandle(j.handle) }

// terminate ends all processes of the job; there may be none.
func (j *job) terminate(exitCode uint32) { _ = windows.TerminateJobObject(j.handle, exitCode) }

// pids returns the processes in the job.
func (j *job) pids() ([]uint32, error) {
	const basicProcessIDList = 3
	type list struct {
		assigned, count uint32
		ids             [1024]uintptr
	}
	answer := new(list)
	query := windows.NewLazySystemDLL("kernel32.dll").NewProc("QueryInformationJobObject")
	ok, _, err := query.Call(uintptr(j.handle), basicProcessIDList, uintptr(unsafe.Pointer(answer)),
		unsafe.Sizeof(*answer), 0)
	if ok == 0 {
		return nil, fmt.Errorf("list the processes of a job: %w", err)
	}
	var pids []uint32
	for _, id := range answer.ids[:min(int(answer.count), len(answer.ids))] {
		pids = append(pids, uint32(id))
	}
	return pids, nil
}

// usage returns the CPU time of all processes that were ever seen in the job, so the time never
// decreases, and the memory of the processes that run. The CPU time that a process uses between its
// last sample and its end is not known.
func (j *job) usage() (usage, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	pids, err := j.pids()
	if err != nil {
		return usage{}, err
	}
	all, err := processes()
	if err != nil {
		return usage{}, err
	}
	running := map[uint32]usage{}
	total := usage{}
	for _, pid := range pids {
		used, there := all[pid]
		if !there {
			continue
		}
		running[pid] = used
		total.add(used)
	}
	for pid, used := range j.last {
		if _, there := running[pid]; !there {
			j.gone.user += used.user
			j.gone.kernel += used.kernel
		}
	}
	j.last = running
	total.add(j.gone)
	return total, nil
}

func (u *usage) add(other usage) {
	u.user += other.user
	u.kernel += other.kernel
	u.workingSet += other.workingSet
	u.commit += other.commit
}

// processes returns the usage of each process of this machine.
func processes() (map[uint32]usage, error) {
	buffer := make([]byte, 256<<10)
	for {
		var length uint32
		err := windows.NtQuerySystemInformation(windows.SystemProcessInformation, unsafe.Pointer(&buffer[0]),
			uint32(len(buffer)), &length)
		if errors.Is(err, windows.STATUS_INFO_LENGTH_MISMATCH) {
			buffer = make([]byte, 2*len(buffer))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		break
	}
	all := map[uint32]usage{}
	for offset := uint32(0); ; {
		p := (*windows.SYSTEM_PROCESS_INFORMATION)(unsafe.Pointer(&buffer[offset]))
		workingSet := uint64(p.WorkingSetPrivateSize)
		if workingSet == 0 { // Wine leaves the private working set zero
			workingSet = uint64(p.WorkingSetSize)
		}
		all[uint32(p.UniqueProcessID)] = usage{uint64(p.UserTime), uint64(p.KernelTime), workingSet,
			uint64(p.PagefileUsage)}
		if p.NextEntryOffset == 0 {
			return all, nil
		}
		offset += p.NextEntryOffset
	}
}

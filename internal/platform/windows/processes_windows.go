package windows

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// processes lists and opens the running processes; run_windows.go starts new ones.
type processes struct{}

func (processes) List(ctx context.Context) ([]platform.Process, error) {
	table, err := processTable()
	if err != nil {
		return nil, err
	}
	entry := unsafe.Pointer(unsafe.SliceData(table))
	text := make([]uint64, textBuffer/8)
	var list []platform.Process
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		raw := (*windows.SYSTEM_PROCESS_INFORMATION)(entry)
		if raw.UniqueProcessID != 0 { // the idle "process" is not a process
			list = append(list, processOf(raw, text))
		}
		if raw.NextEntryOffset == 0 {
			runtime.KeepAlive(table)
			return list, nil
		}
		entry = unsafe.Add(entry, raw.NextEntryOffset)
	}
}

// processTable returns one snapshot of all processes with their times and memory. It needs no
// rights on the processes. The snapshot is a slice of integers, so that it is aligned and the
// garbage collector does not mistake its contents for pointers.
func processTable() ([]uint64, error) {
	size := uint32(256 << 10)
	for {
		table := make([]uint64, size/8)
		var needed uint32
		err := windows.NtQuerySystemInformation(windows.SystemProcessInformation,
			unsafe.Pointer(&table[0]), size, &needed)
		if err == nil {
			return table, nil
		}
		if !errors.Is(err, windows.STATUS_INFO_LENGTH_MISMATCH) {
			return nil, failed(err, "list processes")
		}
		size = (max(needed, size) + size/2) &^ 7
	}
}

// processOf converts one entry of the process table. The parameter `text` is a buffer for the
// process's texts.
func processOf(raw *windows.SYSTEM_PROCESS_INFORMATION, text []uint64) platform.Process {
	pid := uint32(raw.UniqueProcessID)
	image, commandLine := startedWith(pid, text)
	return platform.Process{
		PID:         pid,
		ParentPID:   uint32(raw.InheritedFromUniqueProcessID),
		Name:        raw.ImageName.String(),
		Image:       image,
		Started:     timeOf(raw.CreateTime),
		CPU:         time.Duration(raw.UserTime+raw.KernelTime) * 100,
		Memory:      uint64(raw.WorkingSetSize),
		Handles:     raw.HandleCount,
		Threads:     raw.NumberOfThreads,
		Session:     raw.SessionID,
		CommandLine: commandLine,
	}
}

// timeOf converts ticks of 100 ns since 1601 to a time, and 0 to the zero time.
func timeOf(ticks int64) time.Time {
	if ticks == 0 {
		return time.Time{}
	}
	stamp := windows.Filetime{LowDateTime: uint32(ticks), HighDateTime: uint32(ticks >> 32)}
	return time.Unix(0, stamp.Nanoseconds())
}

// textBuffer is large enough for a header and a text. The text is a path of up to 32,767
// characters, or a command line, whose length in bytes is a number of 16 bits.
const textBuffer = uint32(unsafe.Sizeof(windows.NTUnicodeString{})) + 1<<16

// startedWith returns a process's executable and command line. A text to which access is
// denied is empty.
func startedWith(pid uint32, text []uint64) (image, commandLine string) {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return "", ""
	}
	defer windows.CloseHandle(handle)
	path := unsafe.Slice((*uint16)(unsafe.Pointer(&text[0])), textBuffer/2)
	size := uint32(len(path))
	if windows.QueryFullProcessImageName(handle, 0, &path[0], &size) == nil {
		image = windows.UTF16ToString(path[:size])
	}
	// Since version 8.1, Windows returns the command line of a process. Older versions and Wine
	// return an error; reading the command line from the process's memory needs more rights.
	err = windows.NtQueryInformationProcess(handle, windows.ProcessCommandLineInformation, unsafe.Pointer(&text[0]),
		textBuffer, &size)
	if err == nil {
		commandLine = (*windows.NTUnicodeString)(unsafe.Pointer(&text[0])).String()
	} else if errors.Is(err, windows.STATUS_INVALID_INFO_CLASS) || errors.Is(err, windows.STATUS_NOT_IMPLEMENTED) {
		commandLine = commandLineInMemory(pid)
	}
	return image, commandLine
}

func (processes) Open(pid uint32) (platform.ProcessHandle, error) {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, pid)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		handle, err = windows.OpenProcess(windows.SYNCHRONIZE, false, pid) // this right suffices to wait
	}
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil, fmt.Errorf("open process %d: %w", pid, fault.ErrNotExist)
	}
	if err != nil {
		return nil, failed(err, "open process %d", pid)
	}
	h := &processHandle{pid: pid, handle: handle}
	if h.ended() {
		// The process has ended, but an open handle of another process keeps its PID in use.
		return nil, errors.Join(fmt.Errorf("open process %d: %w", pid, fault.ErrNotExist), h.Close())
	}
	return h, nil
}

type processHandle struct {
	pid    uint32
	handle windows.Handle
}

func (h *processHandle) ended() bool {
	event, err := windows.WaitForSingleObject(h.handle, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

func (h *processHandle) Wait(ctx context.Context) error {
	what := fmt.Sprintf("wait for process %d", h.pid)
	cancelled, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return failed(err, "%s", what)
	}
	defer windows.CloseHandle(cancelled)
	signalled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(signalled)
		_ = windows.SetEvent(cancelled)
	})
	defer func() {
		if !stop() {
			<-signalled // wait for the goroutine, since the event is closed next
		}
	}()
	event, err := windows.WaitForMultipleObjects([]windows.Handle{h.handle, cancelled}, false, windows.INFINITE)
	switch {
	case err != nil:
		return failed(err, "%s", what)
	case event == windows.WAIT_OBJECT_0:
		return nil
	}
	return fmt.Errorf("%s: %w", what, ctx.Err())
}

func (h *processHandle) Kill() error {
	err := windows.TerminateProcess(h.handle, 1)
	if err != nil && h.ended() {
		return nil
	}
	return failed(err, "kill process %d", h.pid)
}

func (h *processHandle) Close() error {
	return failed(windows.CloseHandle(h.handle), "release process %d", h.pid)
}

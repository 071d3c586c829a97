package windows

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

// CheckHeld opens the file for deletion, as a rename and a removal do, and closes it.
func (files) CheckHeld(path string) error {
	path, err := clean(path)
	if err != nil {
		return err
	}
	handle, err := open(path, windows.DELETE, shareAll, windows.OPEN_EXISTING, itself)
	if err != nil {
		return failed(err, "ask whether %s can be renamed", path)
	}
	return failed(windows.CloseHandle(handle), "close %s", path)
}

// processInfo is RM_PROCESS_INFO of RestartManager.h.
type processInfo struct {
	pid         uint32
	started     windows.Filetime
	application [256]uint16 // CCH_RM_MAX_APP_NAME + 1
	service     [64]uint16  // CCH_RM_MAX_SVC_NAME + 1
	kind        uint32
	status      uint32
	session     uint32
	restartable int32
}

// mostHolders bounds the list of processes that hold one file.
const mostHolders = 1000

// Holders asks the Restart Manager (rstrtmgr.dll). Under Wine it finds no process.
func (files) Holders(path string) ([]platform.Holder, error) {
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	what := "find the programs that hold " + path
	list, err := (&restartManager{}).holders(path)
	if err != nil {
		return nil, failed(err, "%s", what)
	}
	own := uint32(os.Getpid())
	text := make([]uint64, textBuffer/8)
	var holders []platform.Holder
	for _, p := range list {
		if image, _ := startedWith(p.pid, text); p.pid != own {
			holders = append(holders, platform.Holder{PID: p.pid, Name: windows.UTF16ToString(p.application[:]),
				Runs: strings.EqualFold(image, path)})
		}
	}
	slices.SortFunc(holders, func(a, b platform.Holder) int { return cmp.Compare(a.PID, b.PID) })
	return holders, nil
}

// restartManager is a session of the Restart Manager.
type restartManager struct{ handle uint32 }

func (r *restartManager) holders(path string) ([]processInfo, error) {
	var key [33]uint16 // CCH_RM_SESSION_KEY + 1
	if err := r.call("RmStartSession", uintptr(unsafe.Pointer(&r.handle)), 0, uintptr(unsafe.Pointer(&key))); err != nil {
		return nil, err
	}
	defer func() { _ = r.call("RmEndSession", uintptr(r.handle)) }()
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	if err := r.call("RmRegisterResources", uintptr(r.handle), 1, uintptr(unsafe.Pointer(&path16)), 0, 0, 0, 0); err != nil {
		return nil, err
	}
	return r.list()
}

// list returns the processes that use the registered file. More processes can come between the call that counts them
// and the call that lists them.
func (r *restartManager) list() ([]processInfo, error) {
	for room := uint32(8); ; {
		list := make([]processInfo, room)
		needed, got, reasons := uint32(0), room, uint32(0)
		err := r.call("RmGetList", uintptr(r.handle), uintptr(unsafe.Pointer(&needed)), uintptr(unsafe.Pointer(&got)),
			uintptr(unsafe.Pointer(unsafe.SliceData(list))), uintptr(unsafe.Pointer(&reasons)))
		if err != windows.ERROR_MORE_DATA || room >= mostHolders {
			return list[:min(got, room)], err
		}
		room = min(needed+8, mostHolders)
	}
}

// call calls a function of the Restart Manager, which returns a Win32 error.
//
//go:uintptrescapes
func (r *restartManager) call(name string, args ...uintptr) error {
	proc := windows.NewLazySystemDLL("rstrtmgr.dll").NewProc(name)
	if err := proc.Find(); err != nil {
		return err
	}
	if code, _, _ := proc.Call(args...); code != 0 {
		return syscall.Errno(code)
	}
	return nil
}

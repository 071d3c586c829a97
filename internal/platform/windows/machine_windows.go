package windows

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	versionKey  = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	prefetchKey = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`
)

// machine is the computer as a whole.
type machine struct {
	processes platform.Processes
	registry  platform.Registry
}

func (m machine) Facts(ctx context.Context) (platform.Facts, error) {
	name, err := os.Hostname()
	if err != nil {
		return platform.Facts{}, failed(err, "read the host name")
	}
	bootID, err := m.bootID(ctx)
	if err != nil {
		return platform.Facts{}, err
	}
	pending, err := m.pendingReboot()
	if err != nil {
		return platform.Facts{}, err
	}
	total, free, err := memory()
	if err != nil {
		return platform.Facts{}, err
	}
	drive := systemDrive()
	diskFree, err := files{}.FreeBytes(drive + `\`)
	if err != nil {
		return platform.Facts{}, err
	}
	return platform.Facts{
		Hostname:      name,
		Product:       m.text(versionKey, "ProductName"),
		Build:         m.build(),
		Architecture:  architecture(),
		BootID:        bootID,
		Uptime:        windows.DurationSinceBoot(),
		CPUs:          int(windows.GetActiveProcessorCount(windows.ALL_PROCESSOR_GROUPS)),
		Memory:        total,
		MemoryFree:    free,
		SystemDrive:   drive,
		DiskFree:      uint64(diskFree),
		PendingReboot: pending,
		Elevated:      windows.GetCurrentProcessToken().IsElevated(),
		Simulated:     simulated(),
		Time:          time.Now(),
		// The value is false if a hypervisor is already running; the caller can detect a running
		// hypervisor by Hyper-V's services.
		Virtualization: windows.IsProcessorFeaturePresent(windows.PF_VIRT_FIRMWARE_ENABLED),
	}, nil
}

// text returns a registry value as text, or "" if it is missing.
func (m machine) text(key, name string) string {
	value, err := m.registry.Get(key, name)
	switch {
	case err != nil:
		return ""
	case value.Type == platform.RegistryDWord:
		return fmt.Sprint(value.Integer)
	}
	return value.String
}

func (m machine) build() string {
	build, revision := m.text(versionKey, "CurrentBuildNumber"), m.text(versionKey, "UBR")
	if build == "" {
		build = fmt.Sprint(windows.RtlGetVersion().BuildNumber)
	}
	if revision == "" {
		return build
	}
	return build + "." + revision
}

// bootID combines two values: the counter that Windows keeps of its boots (which the kubelet also
// reports), and the start time of the Service Control Manager's process. The counter is missing
// under Wine, and if prefetching is off. The process starts once per boot on Windows and under
// Wine.
func (m machine) bootID(ctx context.Context) (string, error) {
	list, err := m.processes.List(ctx)
	if err != nil {
		return "", fmt.Errorf("find the time of the last boot: %w", err)
	}
	if p, found := managerOf(list); found {
		return fmt.Sprintf("%s-%x", m.text(prefetchKey, "BootId"), p.Started.UnixNano()/100), nil
	}
	return "", fmt.Errorf("find the time of the last boot: no Service Control Manager runs: %w", fault.ErrNotExist)
}

// pendingReboot returns the reasons for a pending reboot. It checks the same places as Windows' own
// tools.
func (m machine) pendingReboot() ([]string, error) {
	var reasons []string
	for _, flag := range []struct{ key, reason string }{
		{`HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending`,
			"a Windows component was changed"},
		{`HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired`,
			"Windows Update has installed something"},
	} {
		exists, err := keyExists(flag.key)
		if err != nil {
			return nil, err
		}
		if exists {
			reasons = append(reasons, flag.reason)
		}
	}
	const sessionManager = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager`
	if renames, err := m.registry.Get(sessionManager, "PendingFileRenameOperations"); err == nil &&
		len(renames.Strings) > 0 {
		reasons = append(reasons, "files in use wait to be replaced")
	}
	const names = `HKLM\SYSTEM\CurrentControlSet\Control\ComputerName\`
	now, next := m.text(names+"ActiveComputerName", "ComputerName"), m.text(names+"ComputerName", "ComputerName")
	if now != "" && next != "" && !strings.EqualFold(now, next) {
		reasons = append(reasons, "the computer was renamed")
	}
	return reasons, nil
}

func (machine) Reboot(ctx context.Context, reason string) error {
	const what = "reboot the machine"
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := enablePrivilege("SeShutdownPrivilege"); err != nil {
		return failed(err, what)
	}
	if simulated() == "wine" {
		// Wine's InitiateSystemShutdownEx reports success and does nothing.
		// ExitWindowsEx ends all processes of the Wine prefix; the program that
		// owns the prefix starts them again.
		const force = windows.EWX_REBOOT | windows.EWX_FORCE
		return failed(windows.ExitWindowsEx(force, windows.SHTDN_REASON_MAJOR_OTHER), what)
	}
	message, err := windows.UTF16PtrFromString(reason)
	if err != nil {
		return fmt.Errorf("%s: reason %q: %w", what, reason, err)
	}
	// Wait two seconds, so that the reply is sent first.
	const seconds, force, restart = 2, true, true
	err = windows.InitiateSystemShutdownEx(nil, message, seconds, force, restart,
		windows.SHTDN_REASON_MAJOR_OTHER|windows.SHTDN_REASON_FLAG_PLANNED)
	switch code(err) {
	case windows.ERROR_SHUTDOWN_IN_PROGRESS, windows.ERROR_SHUTDOWN_IS_SCHEDULED:
		return nil
	}
	return failed(err, what)
}

// ShuttingDown asks for SM_SHUTTINGDOWN: "nonzero if the current session is shutting down" (GetSystemMetrics). Services
// are in session 0, which ends with Windows alone.
func (machine) ShuttingDown(ctx context.Context) (bool, error) {
	const (
		what         = "ask whether Windows shuts down"
		shuttingDown = 0x2000 // SM_SHUTTINGDOWN
	)
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	metrics := windows.NewLazySystemDLL("user32.dll").NewProc("GetSystemMetrics")
	if err := metrics.Find(); err != nil {
		return false, failed(err, what)
	}
	result, _, _ := metrics.Call(shuttingDown)
	return result != 0, nil
}

func (machine) BroadcastEnvironment(ctx context.Context) error {
	const (
		what          = "notify programs of the new environment"
		everyWindow   = 0xffff // HWND_BROADCAST
		settingChange = 0x1a   // WM_SETTINGCHANGE
		skipHung      = 2      // SMTO_ABORTIFHUNG
		milliseconds  = 5000   // for each window
	)
	subject, err := windows.UTF16PtrFromString("Environment")
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	send := windows.NewLazySystemDLL("user32.dll").NewProc("SendMessageTimeoutW")
	if err := send.Find(); err != nil {
		return failed(err, what)
	}
	return untilDone(ctx, what, func() error {
		var result uintptr
		ok, _, err := send.Call(everyWindow, settingChange, 0, uintptr(unsafe.Pointer(subject)),
			skipHung, milliseconds, uintptr(unsafe.Pointer(&result)))
		if ok == 0 && code(err) != 0 && code(err) != windows.ERROR_TIMEOUT {
			return err
		}
		return nil // a window that does not respond is no error of this call
	})
}

func systemDrive() string {
	folder, err := windows.GetSystemWindowsDirectory()
	if err != nil || len(folder) < 2 {
		return "C:"
	}
	return strings.ToUpper(folder[:2])
}

// architecture returns the machine's own architecture, even if this program is
// emulated.
func architecture() string {
	const amd64, arm64 = 0x8664, 0xaa64 // IMAGE_FILE_MACHINE_…
	var process, native uint16
	if err := windows.IsWow64Process2(windows.CurrentProcess(), &process, &native); err == nil {
		switch native {
		case amd64:
			return "amd64"
		case arm64:
			return "arm64"
		}
	}
	return runtime.GOARCH
}

// simulated detects Wine by the function that Wine provides for that purpose.
func simulated() string {
	if windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil {
		return "wine"
	}
	return ""
}

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                                   uint32
	total, free, totalPage, freePage, totalVirtual, freeVirtual, _ uint64
}

func memory() (total, free uint64, err error) {
	status := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").
		Call(uintptr(unsafe.Pointer(&status)))
	if ok == 0 {
		return 0, 0, failed(err, "read the size of the memory")
	}
	return status.total, status.free, nil
}

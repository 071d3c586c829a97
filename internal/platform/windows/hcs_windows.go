package windows

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

// hcsQueries returns queries for a compute system's properties. The caller tries them in this order
// until one succeeds. The first requests resource usage and processes. The second requests resource
// usage alone, for a VM: the service cannot list the processes in a VM.
func hcsQueries() []string {
	return []string{`{"PropertyTypes":["Statistics","ProcessList"]}`, `{"PropertyTypes":["Statistics"]}`}
}

func (compute) Systems(ctx context.Context) ([]platform.ComputeSystem, error) {
	service := dll{"vmcompute.dll"}
	list, err := service.list("HcsEnumerateComputeSystems", "{}")
	if err != nil {
		return nil, fmt.Errorf("list the compute systems: %w", err)
	}
	var summaries []json.RawMessage
	if err := json.Unmarshal(list, &summaries); err != nil {
		return nil, fmt.Errorf("list the compute systems: the reply is not a list: %w", err)
	}
	var systems []platform.ComputeSystem
	for _, summary := range summaries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var named struct{ Id string }
		if err := json.Unmarshal(summary, &named); err != nil {
			return nil, fmt.Errorf("list the compute systems: %w", err)
		}
		system := platform.ComputeSystem{ID: named.Id, Summary: summary}
		if system.Properties, err = service.systemProperties(named.Id); err != nil {
			system.Failure = err.Error()
		}
		systems = append(systems, system)
	}
	return systems, nil
}

func (d dll) systemProperties(id string) (document []byte, err error) {
	handle, err := d.openSystem(id)
	if err != nil {
		return nil, err
	}
	defer d.call("HcsCloseComputeSystem", handle)
	for _, query := range hcsQueries() {
		if document, err = d.properties("HcsGetComputeSystemProperties", handle, query); err == nil {
			break
		}
	}
	return document, err
}

func (d dll) openSystem(id string) (handle uintptr, err error) {
	name, err := windows.UTF16PtrFromString(id)
	if err != nil {
		return 0, err
	}
	var told *uint16
	err = d.call("HcsOpenComputeSystem", uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&handle)),
		uintptr(unsafe.Pointer(&told)))
	return handle, withDetail(err, told)
}

func (compute) Terminate(_ context.Context, id string) error {
	service := dll{"vmcompute.dll"}
	handle, err := service.openSystem(id)
	if err != nil {
		return fmt.Errorf("open compute system %s: %w", id, err)
	}
	defer service.call("HcsCloseComputeSystem", handle)
	options, err := windows.UTF16PtrFromString("") // as hcsshim does
	if err != nil {
		return err
	}
	var told *uint16
	err = service.call("HcsTerminateComputeSystem", handle, uintptr(unsafe.Pointer(options)),
		uintptr(unsafe.Pointer(&told)))
	if code(err) == operationPending {
		return withDetail(nil, told)
	}
	if err := withDetail(err, told); err != nil {
		return fmt.Errorf("terminate compute system %s: %w", id, err)
	}
	return nil
}

// operationPending means that the service continues the operation after the call.
const operationPending syscall.Errno = 0xC0370103 // ERROR_VMCOMPUTE_OPERATION_PENDING

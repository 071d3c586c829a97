package windows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/host"
)

// compute asks the Host Network Service and the Host Compute Service through their
// DLLs. Microsoft's hcsshim does the same, with a log library and more around it
// than the whole agent may weigh.
type compute struct{}

// schema2 asks for objects as documents of schema 2.
const schema2 = `{"SchemaVersion":{"Major":2,"Minor":0}}`

func (compute) NetworkObjects(ctx context.Context, kind host.NetworkKind) ([][]byte, error) {
	one := hcnName(kind)
	if one == "" {
		return nil, fmt.Errorf("list the %s of the Host Network Service: %w", kind, host.ErrNotSupported)
	}
	service := dll{"computenetwork.dll"}
	list, err := service.list("HcnEnumerate"+one+"s", schema2)
	if err != nil {
		return nil, fmt.Errorf("list the %s of the Host Network Service: %w", kind, err)
	}
	var ids []string
	if err := json.Unmarshal(list, &ids); err != nil {
		return nil, fmt.Errorf("list the %s of the Host Network Service: its answer is no list of IDs: %w", kind, err)
	}
	var objects [][]byte
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		object, err := service.networkObject(one, id)
		if errors.Is(err, host.ErrNotExist) { // it went away meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask the Host Network Service for %s %s: %w", one, id, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// hcnName is a kind's name in the functions' names.
func hcnName(kind host.NetworkKind) string {
	switch kind {
	case host.HNSNetworks:
		return "Network"
	case host.HNSEndpoints:
		return "Endpoint"
	case host.HNSNamespaces:
		return "Namespace"
	case host.HNSLoadBalancers:
		return "LoadBalancer"
	}
	return ""
}

func (d dll) networkObject(kind, id string) ([]byte, error) {
	guid, err := windows.GUIDFromString("{" + id + "}")
	if err != nil {
		return nil, err
	}
	var handle uintptr
	var told *uint16
	err = d.call("HcnOpen"+kind, uintptr(unsafe.Pointer(&guid)), uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(&told)))
	if err := because(err, told); err != nil {
		return nil, err
	}
	defer d.call("HcnClose"+kind, handle)
	return d.properties("HcnQuery"+kind+"Properties", handle, schema2)
}

// dll is a system DLL whose functions return an HRESULT and, in their last
// argument, a text about a failure.
type dll struct{ name string }

// list calls a function that lists what a query is about.
func (d dll) list(function, query string) ([]byte, error) {
	asked, err := windows.UTF16PtrFromString(query)
	if err != nil {
		return nil, err
	}
	var list, told *uint16
	err = d.call(function, uintptr(unsafe.Pointer(asked)), uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&told)))
	return taken(list), because(err, told)
}

// properties calls a function that tells of the object behind a handle.
func (d dll) properties(function string, handle uintptr, query string) ([]byte, error) {
	asked, err := windows.UTF16PtrFromString(query)
	if err != nil {
		return nil, err
	}
	var document, told *uint16
	err = d.call(function, handle, uintptr(unsafe.Pointer(asked)), uintptr(unsafe.Pointer(&document)), uintptr(unsafe.Pointer(&told)))
	return taken(document), because(err, told)
}

// call calls a function. What the arguments point at neither moves nor goes before
// the call is over, where they are converted in the call itself.
//
//go:uintptrescapes
func (d dll) call(function string, args ...uintptr) error {
	proc := windows.NewLazySystemDLL(d.name).NewProc(function)
	if proc.Find() != nil { // an older Windows, or one without containers
		return &Error{Code: windows.ERROR_PROC_NOT_FOUND, kind: host.ErrNotSupported}
	}
	hr, _, _ := proc.Call(args...)
	return resultError(uint32(hr))
}

// resultError is what an HRESULT means; nil for success.
func resultError(hr uint32) error {
	if int32(hr) >= 0 {
		return nil
	}
	if hr&0x1fff0000 == 0x00070000 {
		hr &= 0xffff
	}
	e := &Error{Code: syscall.Errno(hr), kind: kindOf(syscall.Errno(hr))}
	switch windows.Handle(hr) { // the type that these constants have
	case windows.HCN_E_NETWORK_NOT_FOUND, windows.HCN_E_ENDPOINT_NOT_FOUND, windows.GCN_E_NETCOMPARTMENT_NOT_FOUND,
		windows.HCS_E_SYSTEM_NOT_FOUND, windows.HCS_E_SYSTEM_ALREADY_STOPPED, windows.Handle(windows.ERROR_NOT_FOUND):
		e.kind = host.ErrNotExist
	}
	return e
}

// because adds to an error what the service told about it. A text alone is no
// failure.
func because(err error, told *uint16) error {
	if text := taken(told); err != nil && len(text) > 0 {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// taken is a text that a service gave, which is freed.
func taken(text *uint16) []byte {
	if text == nil {
		return nil
	}
	defer windows.CoTaskMemFree(unsafe.Pointer(text))
	return []byte(windows.UTF16PtrToString(text))
}

package windows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// compute calls the Host Network Service and the Host Compute Service through their DLLs.
// Microsoft's hcsshim does the same, but hcsshim alone, with its log library and other code,
// exceeds the size limit of the agent.
type compute struct{}

// schema2 requests objects as documents of schema 2.
const schema2 = `{"SchemaVersion":{"Major":2,"Minor":0}}`

func (compute) NetworkObjects(ctx context.Context, kind platform.NetworkKind) ([][]byte, error) {
	one := hcnName(kind)
	if one == "" {
		return nil, fmt.Errorf("list the %s of the Host Network Service: %w", kind, fault.ErrNotSupported)
	}
	service := dll{"computenetwork.dll"}
	list, err := service.list("HcnEnumerate"+one+"s", schema2)
	if err != nil {
		return nil, fmt.Errorf("list the %s of the Host Network Service: %w", kind, err)
	}
	var ids []string
	if err := json.Unmarshal(list, &ids); err != nil {
		return nil, fmt.Errorf("list the %s of the Host Network Service: its reply is not a list of IDs: %w", kind, err)
	}
	var objects [][]byte
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		object, err := service.networkObject(one, id)
		if errors.Is(err, fault.ErrNotExist) { // the object was deleted after it was listed
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s of the Host Network Service: %w", one, id, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// hcnName returns the word for a kind in the names of the DLL's functions, such as Network in
// HcnOpenNetwork. For an unknown kind it returns "".
func hcnName(kind platform.NetworkKind) string {
	switch kind {
	case platform.HNSNetworks:
		return "Network"
	case platform.HNSEndpoints:
		return "Endpoint"
	case platform.HNSNamespaces:
		return "Namespace"
	case platform.HNSLoadBalancers:
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
	err = d.call("HcnOpen"+kind, uintptr(unsafe.Pointer(&guid)), uintptr(unsafe.Pointer(&handle)),
		uintptr(unsafe.Pointer(&told)))
	if err := withDetail(err, told); err != nil {
		return nil, err
	}
	defer d.call("HcnClose"+kind, handle)
	return d.properties("HcnQuery"+kind+"Properties", handle, schema2)
}

func (compute) Remove(_ context.Context, kind platform.NetworkKind, id string) error {
	one := hcnName(kind)
	if one == "" || kind == platform.HNSNamespaces {
		return fmt.Errorf("delete one of the %s of the Host Network Service: %w", kind, fault.ErrNotSupported)
	}
	guid, err := windows.GUIDFromString("{" + id + "}")
	if err != nil {
		return fmt.Errorf("delete %s %q of the Host Network Service: %w: %w", one, id, fault.ErrNotExist, err)
	}
	var detail *uint16
	err = dll{"computenetwork.dll"}.call("HcnDelete"+one, uintptr(unsafe.Pointer(&guid)), uintptr(unsafe.Pointer(&detail)))
	if err := withDetail(err, detail); err != nil {
		return fmt.Errorf("delete %s %s of the Host Network Service: %w", one, id, err)
	}
	return nil
}

// dll is a system DLL. Its functions return an HRESULT. If the last argument of a function is a
// pointer for a text, the function stores a text about its failure there.
type dll struct{ name string }

// list calls a function that lists the objects that match a query.
func (d dll) list(function, query string) ([]byte, error) {
	asked, err := windows.UTF16PtrFromString(query)
	if err != nil {
		return nil, err
	}
	var list, told *uint16
	err = d.call(function, uintptr(unsafe.Pointer(asked)), uintptr(unsafe.Pointer(&list)),
		uintptr(unsafe.Pointer(&told)))
	return freed(list), withDetail(err, told)
}

// properties calls a function that returns properties of the object behind a
// handle.
func (d dll) properties(function string, handle uintptr, query string) ([]byte, error) {
	asked, err := windows.UTF16PtrFromString(query)
	if err != nil {
		return nil, err
	}
	var document, told *uint16
	err = d.call(function, handle, uintptr(unsafe.Pointer(asked)), uintptr(unsafe.Pointer(&document)),
		uintptr(unsafe.Pointer(&told)))
	return freed(document), withDetail(err, told)
}

// call calls a function. If an argument converts a pointer to uintptr in the call expression
// itself, the memory behind that pointer neither moves nor is freed before the call is over.
//
//go:uintptrescapes
func (d dll) call(function string, args ...uintptr) error {
	proc := windows.NewLazySystemDLL(d.name).NewProc(function)
	if proc.Find() != nil { // an older Windows, or a Windows without containers
		return &Error{Code: windows.ERROR_PROC_NOT_FOUND, kind: fault.ErrNotSupported}
	}
	hr, _, _ := proc.Call(args...)
	return resultError(uint32(hr))
}

// resultError returns the error that an HRESULT means; nil for success.
func resultError(hr uint32) error {
	if int32(hr) >= 0 {
		return nil
	}
	if hr&0x1fff0000 == 0x00070000 {
		hr &= 0xffff
	}
	return &Error{Code: syscall.Errno(hr), kind: kindOf(hr)}
}

// withDetail adds the service's text to an error. If err is nil, it returns nil, even if there is
// a text.
func withDetail(err error, detail *uint16) error {
	if text := freed(detail); err != nil && len(text) > 0 {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// freed returns a text that a service allocated, and frees it.
func freed(text *uint16) []byte {
	if text == nil {
		return nil
	}
	defer windows.CoTaskMemFree(unsafe.Pointer(text))
	return []byte(windows.UTF16PtrToString(text))
}

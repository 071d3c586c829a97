// Package hcn makes and removes objects of Windows' Host Network Service, as the programs of pod networks do. The
// functions and the forms of objects are those of hcsshim (v0.14.1, hcn/zsyscall_windows.go).
package hcn

import (
	"encoding/json"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The kinds of objects.
const (
	Network  = "Network"
	Endpoint = "Endpoint"
)

// Object is the JSON form of an object.
type Object map[string]any

// CreateNetwork makes a network.
func CreateNetwork(settings Object) error {
	text, err := utf16Of(settings)
	if err != nil {
		return err
	}
	var id windows.GUID
	var handle uintptr
	var failure *uint16
	if err := call("HcnCreateNetwork", unsafe.Pointer(&id), unsafe.Pointer(text), unsafe.Pointer(&handle),
		unsafe.Pointer(&failure)); err != nil {
		return err
	}
	return closeHandle(Network, handle)
}

// CreateEndpoint makes an endpoint of the network with an ID.
func CreateEndpoint(network string, settings Object) error {
	text, err := utf16Of(settings)
	if err != nil {
		return err
	}
	of, err := windows.GUIDFromString("{" + network + "}")
	if err != nil {
		return err
	}
	var id windows.GUID
	var opened, made uintptr
	var failure *uint16
	if err := call("HcnOpenNetwork", unsafe.Pointer(&of), unsafe.Pointer(&opened), unsafe.Pointer(&failure)); err != nil {
		return err
	}
	if err := callHandle("HcnCreateEndpoint", opened, unsafe.Pointer(&id), unsafe.Pointer(text), unsafe.Pointer(&made),
		unsafe.Pointer(&failure)); err != nil {
		return err
	}
	if err := closeHandle(Endpoint, made); err != nil {
		return err
	}
	return closeHandle(Network, opened)
}

// Named returns the ID of the object of a kind with a name; "" if there is none.
func Named(kind, name string) (id string, err error) {
	filter, err := json.Marshal(map[string]string{"Name": name})
	if err != nil {
		return "", err
	}
	query, err := utf16Of(Object{"SchemaVersion": Object{"Major": 2, "Minor": 0}, "Flags": 0, "Filter": string(filter)})
	if err != nil {
		return "", err
	}
	var list, failure *uint16
	if err := call("HcnEnumerate"+kind+"s", unsafe.Pointer(query), unsafe.Pointer(&list), unsafe.Pointer(&failure)); err != nil {
		return "", err
	}
	defer windows.CoTaskMemFree(unsafe.Pointer(list))
	var ids []string
	if err := json.Unmarshal([]byte(windows.UTF16PtrToString(list)), &ids); err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// Delete deletes the object of a kind with an ID.
func Delete(kind, id string) error {
	guid, err := windows.GUIDFromString("{" + id + "}")
	if err != nil {
		return err
	}
	var failure *uint16
	return call("HcnDelete"+kind, unsafe.Pointer(&guid), unsafe.Pointer(&failure))
}

func closeHandle(kind string, handle uintptr) error { return callHandle("HcnClose"+kind, handle) }

func utf16Of(o Object) (*uint16, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return windows.UTF16PtrFromString(string(text))
}

func call(function string, arguments ...unsafe.Pointer) error {
	err := result(function, words(arguments)...)
	runtime.KeepAlive(arguments)
	return err
}

func callHandle(function string, handle uintptr, arguments ...unsafe.Pointer) error {
	err := result(function, append([]uintptr{handle}, words(arguments)...)...)
	runtime.KeepAlive(arguments)
	return err
}

func words(arguments []unsafe.Pointer) (all []uintptr) {
	for _, a := range arguments {
		all = append(all, uintptr(a))
	}
	return all
}

func result(function string, arguments ...uintptr) error {
	procedure := windows.NewLazySystemDLL("computenetwork.dll").NewProc(function)
	if err := procedure.Find(); err != nil {
		return err
	}
	if code, _, _ := procedure.Call(arguments...); code != 0 {
		return fmt.Errorf("%s: %w", function, syscall.Errno(code))
	}
	return nil
}

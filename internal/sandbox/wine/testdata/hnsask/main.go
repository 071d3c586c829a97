//go:build windows

// Command hnsask prints the answers of the Host Network Service. METHOD PATH uses its old
// interface; the other commands use the new one, in which a KIND is Network, Endpoint or
// LoadBalancer.
package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

const usage = `usage: hnsask METHOD PATH | list KIND QUERY | read KIND ID | create KIND SETTINGS |
	modify KIND ID SETTINGS | delete KIND ID`

func main() {
	text, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "hnsask:", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

func run(args []string) (string, error) {
	switch {
	case len(args) == 2:
		return call(args[0], args[1])
	case len(args) == 3 && args[0] == "list":
		return list(args[1], args[2])
	case len(args) == 3 && args[0] == "read":
		return withObject(args[1], args[2], "")
	case len(args) == 4 && args[0] == "modify":
		return withObject(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "create":
		return create(args[1], args[2])
	case len(args) == 3 && args[0] == "delete":
		return "", remove(args[1], args[2])
	}
	return "", fmt.Errorf("%s", usage)
}

func call(method, path string) (string, error) {
	m, err := windows.UTF16PtrFromString(method)
	if err != nil {
		return "", err
	}
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", err
	}
	none, err := windows.UTF16PtrFromString("")
	if err != nil {
		return "", err
	}
	var response *uint16
	hnsCall := windows.NewLazySystemDLL("vmcompute.dll").NewProc("HNSCall")
	return taken(&response, hnsCall, uintptr(unsafe.Pointer(m)), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(none)), uintptr(unsafe.Pointer(&response)))
}

func list(kind, query string) (string, error) {
	asked, err := windows.UTF16PtrFromString(query)
	if err != nil {
		return "", err
	}
	var list, failure *uint16
	return taken(&list, hcn("HcnEnumerate"+kind+"s"), uintptr(unsafe.Pointer(asked)),
		uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&failure)))
}

// withObject opens an object, modifies it if there are settings, and returns its properties.
func withObject(kind, id, settings string) (string, error) {
	guid, err := windows.GUIDFromString("{" + id + "}")
	if err != nil {
		return "", err
	}
	var handle uintptr
	var failure *uint16
	if err := done(hcn("HcnOpen"+kind), uintptr(unsafe.Pointer(&guid)), uintptr(unsafe.Pointer(&handle)),
		uintptr(unsafe.Pointer(&failure))); err != nil {
		return "", err
	}
	if settings != "" {
		wanted, err := windows.UTF16PtrFromString(settings)
		if err != nil {
			return "", err
		}
		if err := done(hcn("HcnModify"+kind), handle, uintptr(unsafe.Pointer(wanted)),
			uintptr(unsafe.Pointer(&failure))); err != nil {
			return "", err
		}
	}
	return properties(kind, handle)
}

// properties closes the object behind a handle after it has read the object.
func properties(kind string, handle uintptr) (string, error) {
	query, err := windows.UTF16PtrFromString("{}")
	if err != nil {
		return "", err
	}
	var failure, properties *uint16
	text, err := taken(&properties, hcn("HcnQuery"+kind+"Properties"), handle, uintptr(unsafe.Pointer(query)),
		uintptr(unsafe.Pointer(&properties)), uintptr(unsafe.Pointer(&failure)))
	if err != nil {
		return "", err
	}
	return text, done(hcn("HcnClose"+kind), handle)
}

// create makes an endpoint or a load balancer, and returns its properties.
func create(kind, settings string) (string, error) {
	wanted, err := windows.UTF16PtrFromString(settings)
	if err != nil {
		return "", err
	}
	var id windows.GUID
	var handle uintptr
	var failure *uint16
	if kind == "Endpoint" {
		const network = 0 // the settings name it
		err = done(hcn("HcnCreateEndpoint"), network, uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(wanted)),
			uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(&failure)))
	} else {
		err = done(hcn("HcnCreate"+kind), uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(wanted)),
			uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(&failure)))
	}
	if err != nil {
		return "", err
	}
	return properties(kind, handle)
}

func remove(kind, id string) error {
	guid, err := windows.GUIDFromString("{" + id + "}")
	if err != nil {
		return err
	}
	var failure *uint16
	return done(hcn("HcnDelete"+kind), uintptr(unsafe.Pointer(&guid)), uintptr(unsafe.Pointer(&failure)))
}

func hcn(name string) *windows.LazyProc {
	return windows.NewLazySystemDLL("computenetwork.dll").NewProc(name)
}

// taken calls proc and returns the text that proc has stored in *text. The objects that the
// arguments point to must not be moved or freed before the call returns.
//
//go:uintptrescapes
func taken(text **uint16, proc *windows.LazyProc, args ...uintptr) (string, error) {
	if err := done(proc, args...); err != nil {
		return "", err
	}
	defer windows.CoTaskMemFree(unsafe.Pointer(*text))
	return windows.UTF16PtrToString(*text), nil
}

// done calls proc. For the objects that the arguments point to, the same holds as for taken.
//
//go:uintptrescapes
func done(proc *windows.LazyProc, args ...uintptr) error {
	if hr, _, _ := proc.Call(args...); hr != 0 {
		return fmt.Errorf("%s: %w", proc.Name, syscall.Errno(hr))
	}
	return nil
}

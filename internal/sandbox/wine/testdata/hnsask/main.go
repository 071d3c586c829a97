//go:build windows

// Command hnsask prints the answers of the Host Network Service. METHOD PATH uses its old
// interface; "networks" and "network ID" use the new one.
package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

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
	case len(args) == 1 && args[0] == "networks":
		return networks()
	case len(args) == 2 && args[0] == "network":
		return network(args[1])
	case len(args) == 2:
		return call(args[0], args[1])
	}
	return "", fmt.Errorf("usage: hnsask METHOD PATH | networks | network ID")
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

func networks() (string, error) {
	query, err := windows.UTF16PtrFromString("{}")
	if err != nil {
		return "", err
	}
	var list, failure *uint16
	return taken(&list, hcn("HcnEnumerateNetworks"), uintptr(unsafe.Pointer(query)),
		uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&failure)))
}

func network(id string) (string, error) {
	guid, err := windows.GUIDFromString("{" + id + "}")
	if err != nil {
		return "", err
	}
	var handle uintptr
	var failure, properties *uint16
	if hr, _, _ := hcn("HcnOpenNetwork").Call(uintptr(unsafe.Pointer(&guid)),
		uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(&failure))); hr != 0 {
		return "", fmt.Errorf("HcnOpenNetwork: %w", syscall.Errno(hr))
	}
	query, err := windows.UTF16PtrFromString("{}")
	if err != nil {
		return "", err
	}
	return taken(&properties, hcn("HcnQueryNetworkProperties"), handle, uintptr(unsafe.Pointer(query)),
		uintptr(unsafe.Pointer(&properties)), uintptr(unsafe.Pointer(&failure)))
}

func hcn(name string) *windows.LazyProc {
	return windows.NewLazySystemDLL("computenetwork.dll").NewProc(name)
}

// taken calls proc and returns the text that proc has stored in *text. The objects that the
// arguments point to must not be moved or freed before the call returns.
//
//go:uintptrescapes
func taken(text **uint16, proc *windows.LazyProc, args ...uintptr) (string, error) {
	if hr, _, _ := proc.Call(args...); hr != 0 {
		return "", fmt.Errorf("%s: %w", proc.Name, syscall.Errno(hr))
	}
	defer windows.CoTaskMemFree(unsafe.Pointer(*text))
	return windows.UTF16PtrToString(*text), nil
}

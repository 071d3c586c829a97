//go:build windows

package main

import (
	"fmt"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A program under Wine is a process of Linux, so it can make symbolic links with Linux' own calls. Wine 8 has no
// call for that, but follows links: a link to a folder is this folder to every program.
const (
	callSymlink = 88
	callUnlink  = 87
)

func unixCall(number uintptr, first, second *byte) (result int)

// link makes a symbolic link to a file or folder.
func link(target, path string) error {
	from, err := unixPath(target)
	if err != nil {
		return err
	}
	to, err := unixPath(filepath.Dir(path))
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	at, err := syscall.BytePtrFromString(to + "/" + name)
	if err != nil {
		return err
	}
	old, err := syscall.BytePtrFromString(from)
	if err != nil {
		return err
	}
	if result := unixCall(callSymlink, old, at); result != 0 {
		return fmt.Errorf("link %s to %s: Linux' error %d", path, target, -result)
	}
	return nil
}

// unlink removes a link that link has made.
func unlink(path string) error {
	folder, err := unixPath(filepath.Dir(path))
	if err != nil {
		return err
	}
	at, err := syscall.BytePtrFromString(folder + "/" + filepath.Base(path))
	if err != nil {
		return err
	}
	if result := unixCall(callUnlink, at, nil); result != 0 {
		return fmt.Errorf("remove the link %s: Linux' error %d", path, -result)
	}
	return nil
}

// unixPath returns the path of an existing file or folder in Linux.
func unixPath(path string) (string, error) {
	wide, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", err
	}
	answer, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("wine_get_unix_file_name").
		Call(uintptr(unsafe.Pointer(wide)))
	if answer == 0 {
		return "", fmt.Errorf("find %s in Linux: %w", path, err)
	}
	return windows.BytePtrToString(*(**byte)(unsafe.Pointer(&answer))), nil // the few bytes stay allocated
}

// Package windows implements the interfaces of package platform on real
// Windows: Win32 calls through golang.org/x/sys/windows, named pipes through
// go-winio, and no PowerShell.
//
// Each file implements an interface of package platform, a part of an interface, or helper
// functions. Files named _windows.go run on Windows only; the others (firewall rules, DISM's
// output) are pure logic, and are tested on every system.
//
// The package also runs under Wine, as its tests do: a comment marks each place
// that tolerates a difference of Wine.
package windows

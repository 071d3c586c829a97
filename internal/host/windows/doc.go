// Package windows is the real Windows, seen through the small interfaces of
// package host: Win32 calls by golang.org/x/sys/windows, named pipes by
// go-winio, and no PowerShell.
//
// One file is one interface. Files named _windows.go run on Windows only;
// the others (firewall rules, DISM's output) are the parts that are pure logic,
// and are tested on every system.
//
// The package also runs under Wine, where its tests run it: what Wine does
// differently is tolerated and said so in a comment.
package windows

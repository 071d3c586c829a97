//go:build !linux

package netspace

import (
	"net/netip"
	"testing"
)

// Enter skips the test: only Linux has network namespaces.
func Enter(t *testing.T) bool {
	t.Helper()
	t.Skip("a network namespace needs Linux")
	return false
}

// MakeBridge is never called, because Enter has skipped the test.
func MakeBridge(t *testing.T, _ string, _ netip.Prefix) {
	t.Helper()
	t.Fatal("a bridge needs Linux")
}

// AddAddress skips the test: it needs Linux.
func AddAddress(t *testing.T, _ string) {
	t.Helper()
	t.Skip("an address for a test needs Linux")
}

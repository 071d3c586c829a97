//go:build !linux

package cli_test

import "testing"

// networkPrints returns a test that is skipped: only Linux has bridges for VMs.
func networkPrints(string) func(*testing.T) {
	return func(t *testing.T) { t.Skip("a VM on a bridge needs Linux") }
}

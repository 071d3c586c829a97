//go:build !windows

package hyperv

import "runtime"

// program returns the stand-in for PowerShell that a test has set. Without a stand-in, the error is
// a *SystemError, since only Windows has Hyper-V.
func (d *Driver) program() (string, error) {
	if d.options.PowerShell != "" {
		return d.options.PowerShell, nil
	}
	return "", &SystemError{System: runtime.GOOS}
}

//go:build !linux

package network

import "errors"

// errLinuxOnly: macOS and Windows run kind in a VM of their own, whose bridge is not on
// your machine.
var errLinuxOnly = errors.New("a VM on a bridge needs Linux: use network mode user here")

// Tap is a tap device, which leads the frames of one VM to a bridge.
type Tap struct {
	Name   string
	Bridge string
	Owner  int
}

// Missing returns an error: see errLinuxOnly.
func (t Tap) Missing() ([]string, error) { return nil, errLinuxOnly }

// Make returns an error: see errLinuxOnly.
func (t Tap) Make() error { return errLinuxOnly }

// Remove does nothing: there is no tap.
func (t Tap) Remove() error { return nil }

//go:build !linux

package network

import (
	"context"
	"net"
	"net/netip"
)

// Tap is a tap device, which leads the frames of one VM to a bridge.
type Tap struct {
	Name   string
	Bridge string
	Owner  int
}

// Missing returns errLinuxOnly.
func (t Tap) Missing() ([]string, error) { return nil, errLinuxOnly }

// Make returns errLinuxOnly.
func (t Tap) Make() error { return errLinuxOnly }

// Exists returns false: only Linux has taps.
func (t Tap) Exists() (bool, error) { return false, nil }

// Remove does nothing: only Linux has taps.
func (t Tap) Remove() error { return nil }

// CanMake returns false: only Linux has taps.
func CanMake() bool { return false }

// canOpenTaps returns errLinuxOnly.
func canOpenTaps() error { return errLinuxOnly }

// isBridge returns errLinuxOnly.
func isBridge(string) (bool, error) { return false, errLinuxOnly }

// masterOf returns errLinuxOnly.
func masterOf(string) (string, error) { return "", errLinuxOnly }

// portsOf returns errLinuxOnly.
func portsOf(string) ([]string, error) { return nil, errLinuxOnly }

// neighbour returns nil: no network card is known outside of Linux.
func neighbour(context.Context, string, netip.Addr) net.HardwareAddr { return nil }

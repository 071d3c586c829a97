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

// Missing returns an error: see errLinuxOnly.
func (t Tap) Missing() ([]string, error) { return nil, errLinuxOnly }

// Make returns an error: see errLinuxOnly.
func (t Tap) Make() error { return errLinuxOnly }

// Exists reports that there is no tap.
func (t Tap) Exists() (bool, error) { return false, nil }

// Remove does nothing: there is no tap.
func (t Tap) Remove() error { return nil }

// CanMake reports whether this process may make taps.
func CanMake() bool { return false }

// canOpenTaps returns an error: see errLinuxOnly.
func canOpenTaps() error { return errLinuxOnly }

// isBridge reports whether your machine has a bridge of a name.
func isBridge(string) (bool, error) { return false, errLinuxOnly }

// masterOf returns the bridge that a tap is on; "" if on none.
func masterOf(string) (string, error) { return "", errLinuxOnly }

// portsOf returns the interfaces on a bridge.
func portsOf(string) ([]string, error) { return nil, errLinuxOnly }

// portTowards returns the port of a bridge that leads to a machine; "" if it is not known.
func portTowards(context.Context, string, netip.Addr) string { return "" }

// neighbour returns the network card that your machine sees at an address; nil if none.
func neighbour(context.Context, string, netip.Addr) net.HardwareAddr { return nil }

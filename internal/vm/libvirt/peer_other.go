//go:build !linux

package libvirt

import "net"

// checkPeer returns nil: the peer of a socket is known on Linux only.
func checkPeer(net.Conn, string) error { return nil }

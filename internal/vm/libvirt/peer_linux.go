package libvirt

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer returns an error unless root or this user listens on a socket, so that another
// user of your machine cannot pose as libvirt.
func checkPeer(conn net.Conn, path string) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case peer.Uid != 0 && int(peer.Uid) != os.Getuid():
		return fmt.Errorf("user %d listens on %s, which is neither root nor you", peer.Uid, path)
	}
	return nil
}

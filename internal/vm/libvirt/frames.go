package libvirt

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

const (
	// headerSize is the size of the shortest message, in bytes.
	headerSize = 28
	// maxMessage is the size of libvirt's longest message, in bytes.
	maxMessage = 32<<20 + 4
)

// frames is a connection on which every message from the daemon has a plausible length. The check
// protects the client, which allocates that length before it reads the message.
type frames struct {
	net.Conn
	length []byte // the part of a message's length that is still to be returned
	rest   int    // the number of bytes after the message's length that are still to be read
}

// Read returns bytes of the daemon's messages, at most to the end of a message.
func (f *frames) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(f.length) == 0 && f.rest == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	if len(f.length) > 0 {
		n := copy(p, f.length)
		f.length = f.length[n:]
		return n, nil
	}
	n, err := f.Conn.Read(p[:min(len(p), f.rest)])
	f.rest -= n
	return n, err
}

// next reads the length of the next message.
func (f *frames) next() error {
	length := make([]byte, 4)
	if _, err := io.ReadFull(f.Conn, length); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(length)
	if size < headerSize || size > maxMessage {
		f.Conn.Close()
		return fmt.Errorf("libvirt sends a message of %d bytes, which is not its protocol", size)
	}
	f.length, f.rest = length, int(size)-len(length)
	return nil
}

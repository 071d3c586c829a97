package criproxy

import (
	"bytes"
	"io"
	"net"

	"golang.org/x/net/http2"
)

// sniff reads the first bytes that a client sends, and reports whether they begin HTTP/2, which
// carries gRPC. It returns a connection from which these bytes are read again. It waits until the
// client sends something; no client of a runtime waits for the runtime's first word.
func sniff(local net.Conn) (conn net.Conn, grpc bool, err error) {
	const preface = http2.ClientPreface
	begin := make([]byte, 0, len(preface))
	for len(begin) < len(preface) {
		n, err := local.Read(begin[len(begin):cap(begin)])
		begin = begin[:len(begin)+n]
		if err != nil && err != io.EOF {
			return nil, false, err
		}
		if err == io.EOF || string(begin) != preface[:len(begin)] {
			break
		}
	}
	read := io.MultiReader(bytes.NewReader(begin), local)
	return &sniffed{Conn: local, read: read}, string(begin) == preface, nil
}

// sniffed is a connection from which the first bytes were read already.
type sniffed struct {
	net.Conn
	read io.Reader
}

func (s *sniffed) Read(p []byte) (int, error) { return s.read.Read(p) }

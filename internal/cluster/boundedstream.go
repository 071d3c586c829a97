package cluster

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	//lint:ignore SA1019 spdy.Upgrader of client-go has these types
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/transport/spdy"
)

// maxStatus bounds the text by which a node reports how a command ended. client-go keeps all of that text, and with
// SPDY the API server passes on whatever the node sends.
const maxStatus = 1 << 20

// boundedUpgrader makes connections that bound this text.
type boundedUpgrader struct {
	spdy.Upgrader
	connected func() // called when there is a connection
}

func (u boundedUpgrader) NewConnection(resp *http.Response) (httpstream.Connection, error) {
	c, err := u.Upgrader.NewConnection(resp)
	if err != nil {
		return nil, err
	}
	u.connected()
	return boundedConnection{c}, nil
}

type boundedConnection struct{ httpstream.Connection }

func (c boundedConnection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	s, err := c.Connection.CreateStream(headers)
	if err != nil || headers.Get(corev1.StreamType) != corev1.StreamTypeError {
		return s, err
	}
	return &boundedStream{Stream: s, connection: c.Connection, left: maxStatus}, nil
}

// boundedStream ends its connection after a number of bytes. Its end alone would not do: the other streams wait for
// their frames behind those that are not read.
type boundedStream struct {
	httpstream.Stream
	connection httpstream.Connection
	left       int
}

var errLongStatus = fmt.Errorf("the node reports the end of the command with more than %d bytes", maxStatus)

func (s *boundedStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if s.left -= n; s.left < 0 {
		_ = s.connection.Close() // the error of the stream is what counts
		return n, errLongStatus
	}
	return n, err
}

package streaming

import (
	"context"
	"io"
	"math"
	"net"
	"sync"
	"time"
)

// buffer is the size of the buffer for one direction, in bytes.
const buffer = 64 << 10

// client is a client's connection, of which the relay has read the beginning.
type client struct {
	*net.TCPConn
	bytes io.Reader
}

func (c client) Read(p []byte) (int, error) { return c.bytes.Read(p) }

// Copy relays bytes in both directions, as relay does, without a limit of time.
func Copy(ctx context.Context, local, remote Conn) { relay(ctx, local, remote, math.MaxInt64) }

// relay relays bytes in both directions. The end of one direction is passed on, and the other
// direction continues. relay closes both connections when both directions have ended, one has
// failed, nothing was transferred for the time idle, or ctx has ended.
func relay(ctx context.Context, local, remote Conn, idle time.Duration) {
	end := func() {
		// Errors of a connection that is over do not matter.
		_ = local.Close()
		_ = remote.Close()
	}
	defer end()
	defer context.AfterFunc(ctx, end)()
	timer := time.AfterFunc(idle, end)
	defer timer.Stop()
	var directions sync.WaitGroup
	for _, d := range []struct{ to, from Conn }{{remote, local}, {local, remote}} {
		directions.Go(func() {
			if copyAll(d.to, d.from, func() { timer.Reset(idle) }) != nil || d.to.CloseWrite() != nil {
				end()
			}
		})
	}
	directions.Wait()
}

// copyAll copies until the end, and calls moved after each transfer.
func copyAll(to io.Writer, from io.Reader, moved func()) error {
	chunk := make([]byte, buffer)
	for {
		n, err := from.Read(chunk)
		if n > 0 {
			moved()
			if _, err := to.Write(chunk[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

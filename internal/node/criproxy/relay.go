package criproxy

import (
	"context"
	"io"
	"net"
	"sync"
)

// relayBuffer is the size of the buffer for one direction, in bytes.
const relayBuffer = 64 << 10

// relay relays bytes until one side ends, which ends the other, or ctx ends.
func relay(ctx context.Context, local, remote net.Conn) {
	ended := func() {
		// Errors of a connection that is over do not matter.
		_ = local.Close()
		_ = remote.Close()
	}
	defer context.AfterFunc(ctx, ended)()
	var directions sync.WaitGroup
	for _, d := range []struct{ to, from net.Conn }{{remote, local}, {local, remote}} {
		directions.Go(func() {
			defer ended()
			// Use this buffer, whatever shortcuts the connections offer.
			_, _ = io.CopyBuffer(struct{ io.Writer }{d.to}, struct{ io.Reader }{d.from}, make([]byte, relayBuffer))
		})
	}
	directions.Wait()
}

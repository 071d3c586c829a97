package criproxy

import (
	"context"
	"io"
	"net"
	"sync"
)

// relayBuffer is the size of the buffer for one direction, in bytes.
const relayBuffer = 64 << 10

// relay relays bytes in both directions until ctx ends or one side closes. Then
// it closes both sides.
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
			// The wrapped types make CopyBuffer use this buffer, even if the
			// connections offer shortcuts.
			_, _ = io.CopyBuffer(struct{ io.Writer }{d.to}, struct{ io.Reader }{d.from}, make([]byte, relayBuffer))
		})
	}
	directions.Wait()
}

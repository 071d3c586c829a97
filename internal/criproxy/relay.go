package criproxy

import (
	"context"
	"io"
	"net"
	"sync"
)

// relayBuffer is what is on its way in one direction.
const relayBuffer = 64 << 10

// relay passes bytes on until one side ends, which ends the other, or ctx does.
func relay(ctx context.Context, local, remote net.Conn) {
	ended := func() {
		// Nothing is left to be said about a connection that is over.
		_ = local.Close()
		_ = remote.Close()
	}
	defer context.AfterFunc(ctx, ended)()
	var directions sync.WaitGroup
	for _, d := range []struct{ to, from net.Conn }{{remote, local}, {local, remote}} {
		directions.Go(func() {
			defer ended()
			// The buffer is ours, whatever shortcuts the connections offer.
			_, _ = io.CopyBuffer(struct{ io.Writer }{d.to}, struct{ io.Reader }{d.from}, make([]byte, relayBuffer))
		})
	}
	directions.Wait()
}

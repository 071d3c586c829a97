// Package measure measures how long a call of a container runtime takes and how fast bytes pass
// over a connection. The agent on the node and swdt on your machine use the same code, so that the
// results of the two machines can be compared.
package measure

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// MethodStats names a call whose reply grows with the number of the node's containers.
const MethodStats = "/runtime.v1.RuntimeService/ListContainerStats"

// Median returns the median duration of `calls` consecutive calls with an empty
// request. It receives the bytes of each reply, but does not decode them.
func Median(ctx context.Context, conn grpc.ClientConnInterface, method string, calls int) (time.Duration, error) {
	var took []time.Duration
	for range calls {
		var reply []byte
		begun := time.Now()
		if err := conn.Invoke(ctx, method, []byte{}, &reply, grpc.ForceCodec(cri.RawCodec{})); err != nil {
			return 0, fmt.Errorf("%s: %w", method, err)
		}
		took = append(took, time.Since(begun))
	}
	if len(took) == 0 {
		return 0, nil
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// Direction is the direction in which bytes pass.
type Direction byte

const (
	FromServer Direction = 'd'
	ToServer   Direction = 'u'
)

// Block is the size of one block in bytes. The server confirms each block that it receives by
// sending one byte.
const Block = 4 << 20

// ServeBulk serves one call of Bulk on conn. It returns when the connection ends.
func ServeBulk(conn net.Conn) {
	direction := make([]byte, 1)
	if _, err := conn.Read(direction); err != nil {
		return
	}
	chunk := make([]byte, 256<<10)
	for {
		var err error
		if Direction(direction[0]) == FromServer {
			_, err = conn.Write(chunk)
		} else if _, err = io.CopyN(io.Discard, conn, Block); err == nil {
			_, err = conn.Write(direction)
		}
		if err != nil {
			return
		}
	}
}

// Bulk passes blocks in one direction and returns the rate in bytes per second. The first block
// does not count, since windows open and buffers are allocated while the first block passes.
func Bulk(conn net.Conn, direction Direction, blocks int) (float64, error) {
	if _, err := conn.Write([]byte{byte(direction)}); err != nil {
		return 0, err
	}
	block, confirmed := make([]byte, Block), make([]byte, 1)
	var begun time.Time
	for i := range blocks + 1 {
		if i == 1 {
			begun = time.Now()
		}
		var err error
		if direction == FromServer {
			_, err = io.ReadFull(conn, block)
		} else if _, err = conn.Write(block); err == nil {
			_, err = io.ReadFull(conn, confirmed)
		}
		if err != nil {
			return 0, fmt.Errorf("pass bytes: %w", err)
		}
	}
	return float64(blocks) * Block / time.Since(begun).Seconds(), nil
}

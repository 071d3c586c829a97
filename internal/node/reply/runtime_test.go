package reply_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// Network/Pipe carries the runtime's replies. Only their reader decodes them, so these tests let an
// attacker forge them too.

func forgedRuntime(t *testing.T, forge nodetest.Tamper) func(net.Conn) (net.Conn, error) {
	return func(conn net.Conn) (net.Conn, error) {
		near, stop, err := nodetest.Between(conn, forge)
		if err == nil {
			t.Cleanup(stop)
		}
		return near, err
	}
}

// runtimeForgeries returns the forged answers of a hostile runtime, by name.
func runtimeForgeries() map[string]nodetest.Tamper {
	forgeries := map[string]nodetest.Tamper{
		"new containers in each answer": newContainers(),
		"one container many times": func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
			if of, ok := reply.(*runtimev1.ListContainerStatsResponse); ok {
				for range 20_000 {
					of.Stats = append(of.Stats, of.Stats[0])
				}
			}
			return send(reply)
		},
	}
	for seed := range uint64(4) {
		a := &attacker{random: rand.New(rand.NewPCG(seed, 2)), eager: true}
		forgeries[fmt.Sprintf("random %d", seed)] = func(method string, number int, reply proto.Message,
			send func(proto.Message) error) error {
			return a.tamper(method, number, reply, func(m proto.Message) error {
				if err := send(m); err != nil {
					return err
				}
				return io.EOF // a unary call has one answer
			})
		}
	}
	return forgeries
}

func newContainers() nodetest.Tamper {
	var next atomic.Int64 // the calls run side by side
	return func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
		if of, ok := reply.(*runtimev1.ListContainerStatsResponse); ok {
			for range 3000 {
				id := fmt.Sprint(next.Add(1))
				of.Stats = append(of.Stats, &runtimev1.ContainerStats{
					Attributes: &runtimev1.ContainerAttributes{Id: id,
						Metadata: &runtimev1.ContainerMetadata{Name: id}},
					Cpu: &runtimev1.CpuUsage{Timestamp: time.Now().UnixNano()},
				})
			}
		}
		return send(reply)
	}
}

func TestNoRuntimeHarmsWhoAsksIt(t *testing.T) {
	for name, forge := range runtimeForgeries() {
		t.Run(name, func(t *testing.T) {
			n := victim(t)
			here := t.TempDir()
			workdir.Change(t, here)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			change := forgedRuntime(t, forge)
			heap := watchHeap(t)
			err := errors.Join(watchStatsThrough(ctx, n, change), askRuntime(ctx, n, change))
			if ctx.Err() != nil {
				t.Errorf("went on for ever; it ended with %v", err)
			}
			if err != nil && len(err.Error()) > 64<<10 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if most := heap(); most > mostHeap {
				t.Errorf("held %d MB", most>>20)
			}
			if left, err := os.ReadDir(here); err != nil || len(left) > 0 {
				t.Errorf("wrote %v to the current folder, %v", left, err)
			}
		})
	}
}

// askRuntime makes the calls of `swdt cri`.
func askRuntime(ctx context.Context, n *nodetest.Node, change func(net.Conn) (net.Conn, error)) error {
	client, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) {
		conn, err := n.DialPipe(ctx, cri.DefaultPipe)
		if err != nil {
			return nil, err
		}
		return change(conn)
	})
	if err != nil {
		return err
	}
	defer client.Close()
	var failed error
	for _, question := range []criclient.Question{
		criclient.Version, criclient.Status, criclient.Pods, criclient.Containers, criclient.Stats,
		criclient.Images("10.0.20348.2849"),
	} {
		answer, err := question(ctx, client)
		if err == nil {
			err = answer.Text(io.Discard)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// The forging itself works: unchanged replies arrive.
func TestForging(t *testing.T) {
	n := victim(t)
	asked := 0
	change := forgedRuntime(t, func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
		asked++
		return send(reply)
	})
	if err := askRuntime(t.Context(), n, change); err != nil || asked < 6 {
		t.Errorf("%d answers, %v", asked, err)
	}
}

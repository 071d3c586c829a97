package reply_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/inspect/hang"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/ui"
)

// consumer is code that uses the replies of a node. The tests ignore its error; it must not panic,
// run for ever or write outside of the folder.
type consumer func(ctx context.Context, n *nodetest.Node, folder string) error

func consumers() map[string]consumer {
	return map[string]consumer{
		"cp": func(ctx context.Context, n *nodetest.Node, folder string) error {
			_, err := transfer.Download(ctx, n.Node, `C:\var\log`, folder, ui.Discard{})
			return err
		},
		"logs": func(ctx context.Context, n *nodetest.Node, _ string) error {
			found, err := logs.List(ctx, n.Node)
			for _, file := range found {
				_, _ = smallfile.Read(ctx, n.Node, file.Path)
			}
			return err
		},
		"status": func(ctx context.Context, n *nodetest.Node, _ string) error {
			_, err := push.Status(ctx, n.Node, config.Document{},
				push.StatusOptions{Sources: source.NewSet(source.Options{})}, ui.Discard{})
			return err
		},
		"ps": func(ctx context.Context, n *nodetest.Node, _ string) error {
			_, err := owners.Gather(ctx, n.Node)
			return err
		},
		"hns": func(ctx context.Context, n *nodetest.Node, _ string) error {
			_, err := hns.Read(ctx, n.Compute)
			return err
		},
		"hcs": func(ctx context.Context, n *nodetest.Node, _ string) error {
			_, err := hcs.List(ctx, n.Compute)
			return err
		},
		"dump": func(ctx context.Context, n *nodetest.Node, _ string) error {
			_, err := hang.Gather(ctx, n.Node, hang.Options{Pipe: simulated.ContainerdPipe, MetricsURL: kubeproxy.DefaultMetricsURL,
				Limit: 5 * time.Second})
			return err
		},
		"join record": func(ctx context.Context, n *nodetest.Node, _ string) error {
			_, err := join.Own(ctx, n.Node)
			return err
		},
		"capture": func(ctx context.Context, n *nodetest.Node, folder string) error {
			stop := make(chan struct{})
			var once sync.Once
			result, err := capture.Run(ctx, n.Node, capture.Options{
				Stop: stop, Begun: func() { once.Do(func() { close(stop) }) }, Holder: "tester", For: 5 * time.Second,
			})
			if err == nil {
				_, err = capture.Fetch(ctx, n.Node, result, folder, ui.Discard{})
			}
			return err
		},
		"doctor": func(ctx context.Context, n *nodetest.Node, _ string) error {
			facts, err := doctor.Gather(ctx, doctor.Sources{Node: n.Node})
			if err == nil {
				_, err = doctor.Examine(facts)
			}
			return err
		},
		"diag": func(ctx context.Context, n *nodetest.Node, folder string) error {
			_, err := diag.Gather(ctx, []config.Document{{}}, filepath.Join(folder, "bundle.tar.gz"), diag.Options{
				CollectorTimeout: 2 * time.Second, NodeTimeout: 20 * time.Second,
				Connect: func(context.Context, config.Document, ui.Reporter) (*node.Node, func(), error) {
					return n.Node, func() {}, nil
				},
				Reporter: func(config.Document) ui.Reporter { return ui.Discard{} },
			})
			return err
		},
	}
}

// seeds is the number of attackers per consumer. FuzzReply tests the decoding with millions of
// inputs; this test covers the code that uses the decoded replies.
const seeds = 4

func TestReadersSurviveAHostileNode(t *testing.T) {
	here := t.TempDir()
	workdir.Change(t, here)
	t.Cleanup(func() { // after all readers
		if left, err := os.ReadDir(here); err != nil || len(left) > 0 {
			t.Errorf("wrote %v to the current folder, %v", left, err)
		}
	})
	for name, consume := range consumers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of them wait for their own time limits
			for seed := range uint64(seeds) {
				attacked(t, seed, consume)
			}
		})
	}
}

func attacked(t *testing.T, seed uint64, consume consumer) {
	t.Helper()
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\var\log\kubelet.log`, []byte("hello\n"))
	n.Put(`C:\var\log\pods\a\b.log`, []byte("2026-01-01T00:00:00Z stdout F hi\n"))
	a := &attacker{random: rand.New(rand.NewPCG(seed, 0))}
	n.Tamper(a.tamper)
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := consume(ctx, n, folder)
	if ctx.Err() != nil {
		t.Errorf("seed %d: went on for ever; it ended with %v", seed, err)
	}
	if err != nil && len(err.Error()) > 64<<10 {
		t.Errorf("seed %d: an error of %d bytes", seed, len(err.Error()))
	}
	if size := sizeOf(t, folder); size > 64<<20 {
		t.Errorf("seed %d: wrote %d bytes", seed, size)
	}
}

func sizeOf(t *testing.T, folder string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// attacker changes replies of the agent in ways that only a hostile node would.
type attacker struct {
	mu     sync.Mutex
	random *rand.Rand
	eager  bool // it changes every other reply instead of one in eight
}

func (a *attacker) tamper(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
	a.mu.Lock()
	times := 1
	switch a.random.IntN(30) {
	case 0:
		times = 0
	case 1:
		times = 2
	case 2:
		times = 3000
	case 3, 4, 5, 6:
		a.spoil(reply.ProtoReflect(), 0)
	default:
		if a.eager && a.random.IntN(2) == 0 {
			a.spoil(reply.ProtoReflect(), 0)
		}
	}
	a.mu.Unlock()
	for range times {
		if err := send(reply); err != nil {
			return err
		}
	}
	return nil
}

// spoil changes one field of a message, or of a message inside it.
func (a *attacker) spoil(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	if fields.Len() == 0 || depth > 4 {
		return
	}
	field := fields.Get(a.random.IntN(fields.Len()))
	switch {
	case field.IsMap():
		if field.MapKey().Kind() == protoreflect.StringKind && field.MapValue().Message() == nil {
			m.Mutable(field).Map().Set(a.value(field.MapKey()).MapKey(), a.value(field.MapValue()))
		}
	case field.IsList() && field.Kind() == protoreflect.MessageKind:
		list := m.Mutable(field).List()
		switch n := list.Len(); {
		case n == 0 || a.random.IntN(4) == 0:
			a.spoil(list.AppendMutable().Message(), depth+1)
		case a.random.IntN(4) == 0:
			list.Append(list.Get(a.random.IntN(n))) // twice
		case a.random.IntN(4) == 0:
			list.Truncate(a.random.IntN(n))
		default:
			a.spoil(list.Get(a.random.IntN(n)).Message(), depth+1)
		}
	case field.IsList():
		m.Mutable(field).List().Append(a.value(field))
	case field.Kind() == protoreflect.MessageKind:
		a.spoil(m.Mutable(field).Message(), depth+1)
	default:
		m.Set(field, a.value(field))
	}
}

func (a *attacker) value(field protoreflect.FieldDescriptor) protoreflect.Value {
	number := []int64{0, -1, 1, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, 1 << 40}[a.random.IntN(8)]
	switch field.Kind() {
	case protoreflect.StringKind:
		texts := []string{
			"", "..", `..\..\..\x`, "../../x", "/etc/x", `\\server\share\x`, `C:\k\a:stream`, `C:\k\con`, "a\nb",
			"\x1b[2J", "a\x00b",
			strings.Repeat("e", 64), strings.Repeat("x", 70_000), `{"a":` + strings.Repeat("[", 20_000),
			"committed", "running", "end",
		}
		return protoreflect.ValueOfString(texts[a.random.IntN(len(texts))])
	case protoreflect.BytesKind:
		blocks := [][]byte{
			nil, {0}, []byte("{}"), []byte("null"), []byte("[]"), []byte(`{"ID":{}}`),
			bytes.Repeat([]byte("["), 20_000),
			bytes.Repeat([]byte{0xff}, 1<<20), []byte("\xff\xff\xff\xff\x0f\x00"),
			[]byte("\x0a\x0d\x0d\x0a\xff\xff\xff\xff"),
			[]byte(`{"state":"captured","outcome":{"result":"captured"}}`),
		}
		return protoreflect.ValueOfBytes(blocks[a.random.IntN(len(blocks))])
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(a.random.IntN(2) == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(number)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{math.NaN(), math.Inf(1), -1, 1e300}[a.random.IntN(4)])
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(number))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(number)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(number))
	}
	panic(fmt.Sprintf("a field of kind %s", field.Kind()))
}

// The tampering itself works: an unchanged reply arrives, a changed one is refused.
func TestTampering(t *testing.T) {
	n := nodetest.Start(t, "sample", simulated.Options{})
	n.Tamper(func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error { return send(reply) })
	if _, err := n.Node.Machine.Facts(t.Context(), &agentv1.FactsRequest{}); err != nil {
		t.Fatal(err)
	}
	n.Tamper(func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
		reply.(*agentv1.FactsReply).Cpus = -1
		return send(reply)
	})
	if facts, err := n.Node.Machine.Facts(t.Context(), &agentv1.FactsRequest{}); err == nil {
		t.Fatalf("got %v", facts)
	}
}

package reply_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/poll"
	statssource "github.com/swdt-dev/swdt/internal/inspect/stats/sample"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// streamUser is work that makes one streaming call.
type streamUser struct {
	work consumer
	// before changes the replies of other calls, so that the work reaches this one; nil: they stay
	// unchanged.
	before nodetest.Tamper
}

// streamUsers returns, for each streaming call of the contract, work that makes the call. A new
// streaming call needs an entry: see TestEveryStreamIsAttacked.
func streamUsers() map[string]streamUser {
	return map[string]streamUser{
		"Files/Read":       {work: consumers()["cp"]},
		"Files/Tail":       {work: followLogs},
		"Files/Write":      {work: upload},
		"Files/Patch":      {work: sendDifference},
		"Files/Probe":      {work: upload},
		"Processes/Run":    {work: followLogs}, // events come from a program
		"Processes/Stacks": {work: consumers()["dump"]},
		"Network/Pipe":     {work: watchStats},
		"Network/Connect":  {work: askPort},
		"Swap/Run":         {work: pushKubelet},
		"Swap/Resume":      {work: pushKubelet, before: cutSwap},
		"Capture/Run":      {work: consumers()["capture"]},
	}
}

// followFor is how long logs are followed: long enough for a second query of the event log, which
// swdt queries every 2 s.
const followFor = 2300 * time.Millisecond

func followLogs(ctx context.Context, n *nodetest.Node, _ string) error {
	ctx, cancel := context.WithTimeout(ctx, followFor)
	defer cancel()
	m := logs.NewMerger(true, forgetful{})
	in := m.Begin()
	shown := make(chan error, 1)
	go func() {
		shown <- logs.Show(ctx, n.Node, logs.Options{Sources: []string{"kubelet", "event:System"}, Tail: 100,
			Follow: true}, m, in, ui.Discard{})
	}()
	err := m.Run(ctx)
	if failed := <-shown; failed != nil {
		err = failed
	}
	if ctx.Err() != nil { // expected: logs are followed until then
		return nil
	}
	return err
}

// forgetful is a sink that discards everything.
type forgetful struct{}

func (forgetful) Record(logs.Record) error { return nil }
func (forgetful) Flush() error             { return nil }

func upload(ctx context.Context, n *nodetest.Node, folder string) error {
	from := filepath.Join(folder, "from.bin")
	if err := os.WriteFile(from, noise(3<<20), 0o600); err != nil { // large enough to measure the link
		return err
	}
	_, err := transfer.Upload(ctx, n.Node, from, `C:\k\to.bin`, ui.Discard{})
	return err
}

// noise returns bytes that cannot be compressed.
func noise(size int) []byte {
	all := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(all)
	return all
}

// oldBuild is a program on the node that serves as the base of a patch.
const oldBuild = `C:\k\old.exe`

// sendDifference sends a new build over a link so slow that a patch saves time.
func sendDifference(ctx context.Context, n *nodetest.Node, folder string) error {
	old := noise(1 << 20)
	build := append(bytes.Clone(old), "one more function"...)
	n.Put(oldBuild, old)
	n.Speed.Note(node.Reading{At: time.Now(), BytesPerSecond: 50_000, RoundTrip: time.Millisecond})
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	store, err := blobs.Open(filepath.Join(folder, "blobs"), 0)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"old.exe": old, "new.exe": build} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		if err := store.Put(ctx, path, sum(content)); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, "new.exe")
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = transfer.Send(ctx, n.Node, transfer.File{
		Binary: source.Binary{
			Path: path, Modified: info.ModTime(), Size: int64(len(build)), SHA256: sum(build),
		},
		Absent: true,
		Depot:  transfer.NewDepot(store),
		Bases:  []transfer.Base{{Path: oldBuild, SHA256: sum(old), Size: int64(len(old))}},
	}, oldBuild+".new", ui.Discard{})
	return err
}

func pushKubelet(ctx context.Context, n *nodetest.Node, folder string) error {
	doc := config.Document{File: filepath.Join(folder, "swdt.yaml")}
	doc.Node.Metadata.Name = "sample"
	doc.Node.Spec.Kubernetes.Provisioners = []v1alpha1.Provisioner{{
		Name: "kubelet", SourceURL: "kubelet.exe", Destination: simulated.KubeletPath,
		Health: &v1alpha1.Health{Settle: &v1alpha1.Duration{Duration: 50 * time.Millisecond}},
	}}
	v1alpha1.SetDefaults(&doc.Node)
	program := simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1.30.1"})
	if err := os.WriteFile(filepath.Join(folder, "kubelet.exe"), program, 0o600); err != nil {
		return err
	}
	_, err := push.Push(ctx, n.Node, doc, push.Options{
		Holder: "tester", Sources: source.NewSet(source.Options{Cache: filepath.Join(folder, "cache")}),
	}, ui.Discard{})
	return err
}

// cutSwap breaks the connection when the transaction has begun.
func cutSwap(method string, number int, reply proto.Message, send func(proto.Message) error) error {
	if method != "/swdt.agent.v1.Swap/Run" {
		return send(reply)
	}
	if number == 0 {
		return send(reply) // it contains the transaction's ID
	}
	return status.Error(codes.Unavailable, "the connection is gone")
}

func watchStats(ctx context.Context, n *nodetest.Node, _ string) error {
	return watchStatsThrough(ctx, n, func(conn net.Conn) (net.Conn, error) { return conn, nil })
}

// watchStatsThrough watches the statistics of a runtime over a connection that change returns.
func watchStatsThrough(ctx context.Context, n *nodetest.Node, change func(net.Conn) (net.Conn, error)) error {
	runtime, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) {
		conn, err := n.DialPipe(ctx, cri.DefaultPipe)
		if err != nil {
			return nil, err
		}
		return change(conn)
	})
	if err != nil {
		return err
	}
	defer runtime.Close()
	follower, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
	return poll.Run(ctx, poll.Options{
		Node: n.Name, Interval: 20 * time.Millisecond, For: 200 * time.Millisecond, Callers: 1,
		Askers: []poll.Asker{statssource.NewCRI(runtime.Runtime, 4, true),
			statssource.NewNode(runtime.Runtime, n.Processes, 4)},
	}, func(r stats.Reading) error {
		tally.Add(r, follower.Add(r))
		_ = tally.Summaries()
		return nil
	})
}

// askPort sends text to a port of the node, which sends it back, and reads to the end.
func askPort(ctx context.Context, n *nodetest.Node, _ string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var answered sync.WaitGroup
	answered.Go(func() {
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}
	})
	defer answered.Wait()
	defer listener.Close()
	conn, err := n.DialPort(ctx, netip.MustParseAddrPort(listener.Addr().String()))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// streamAttack is one way in which a hostile node changes the replies of a streaming call.
type streamAttack struct {
	tamper nodetest.Tamper
	// ends reports whether swdt's work ends by itself; if not, the caller cancels it after a short
	// time.
	ends bool
}

func streamAttacks() map[string]streamAttack {
	attacks := map[string]streamAttack{
		"silence": {tamper: func(string, int, proto.Message, func(proto.Message) error) error { return nil }},
		"the end at once": {ends: true, tamper: func(string, int, proto.Message, func(proto.Message) error) error {
			return io.EOF
		}},
		"no end": {tamper: func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
			for {
				if err := send(reply); err != nil {
					return err
				}
			}
		}},
		"a long error": {ends: true, tamper: func(string, int, proto.Message, func(proto.Message) error) error {
			return status.Error(codes.Unknown, strings.Repeat("\x1b[2J..\\", 1<<16))
		}},
		"a large reply": {ends: true, tamper: func(_ string, _ int, reply proto.Message,
			send func(proto.Message) error) error {
			fill(reply.ProtoReflect(), strings.Repeat("x", 3<<20))
			return send(reply)
		}},
	}
	for seed := range uint64(3) {
		random := &attacker{random: rand.New(rand.NewPCG(seed, 1)), eager: true}
		attacks["random "+string('a'+rune(seed))] = streamAttack{tamper: random.tamper, ends: true}
	}
	return attacks
}

// fill sets every text field of a message.
func fill(m protoreflect.Message, text string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case field.IsList() || field.IsMap():
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(text))
		case field.Kind() == protoreflect.BytesKind:
			m.Set(field, protoreflect.ValueOfBytes([]byte(text)))
		}
	}
}

// streamingCalls returns all streaming calls of the contract, such as Files/Read.
func streamingCalls() (calls []string) {
	protoregistry.GlobalFiles.RangeFilesByPackage("swdt.agent.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				if method := service.Methods().Get(j); method.IsStreamingClient() || method.IsStreamingServer() {
					calls = append(calls, string(service.Name())+"/"+string(method.Name()))
				}
			}
		}
		return true
	})
	slices.Sort(calls)
	return calls
}

// Every streaming call has work in streamUsers that makes it, with replies that can be attacked.
func TestEveryStreamIsAttacked(t *testing.T) {
	users := streamUsers()
	if got := slices.Sorted(maps.Keys(users)); !slices.Equal(got, streamingCalls()) {
		t.Fatalf("attacked are %q,\nthe contract has %q", got, streamingCalls())
	}
	for call, user := range users {
		t.Run(call, func(t *testing.T) {
			for range streamTries {
				if user.replies(t, call) > 0 {
					return
				}
			}
			t.Error("the work does not make this call")
		})
	}
}

// streamTries is how often the work of a call is tried with a new node. On a busy machine, the node may have
// finished a transaction before swdt, whose connection broke, asks to resume it.
const streamTries = 5

// replies runs the work against an honest node and returns the number of replies to the call.
func (u streamUser) replies(t *testing.T, call string) int {
	t.Helper()
	n := victim(t)
	var replies atomic.Int64
	n.Tamper(u.on(call, func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
		replies.Add(1)
		return send(reply)
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := u.work(ctx, n, t.TempDir())
	if err != nil && ctx.Err() == nil && err != context.DeadlineExceeded {
		t.Errorf("against an honest node: %v", err)
	}
	return int(replies.Load())
}

// on attacks one call.
func (u streamUser) on(call string, attack nodetest.Tamper) nodetest.Tamper {
	return func(method string, number int, reply proto.Message, send func(proto.Message) error) error {
		switch {
		case method == "/swdt.agent.v1."+call:
			return attack(method, number, reply, send)
		case u.before != nil:
			return u.before(method, number, reply, send)
		}
		return send(reply)
	}
}

func victim(t *testing.T) *nodetest.Node {
	t.Helper()
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\var\log\kubelet\kubelet.log`, bytes.Repeat([]byte("I0101 00:00:00.000000       1 x.go:1] hello\n"), 1000))
	return n
}

func TestNoStreamHarmsWhoReadsIt(t *testing.T) {
	for _, call := range streamingCalls() {
		for name, attack := range streamAttacks() {
			t.Run(call+"/"+name, func(t *testing.T) { streamAttacked(t, call, attack) })
		}
	}
}

// mostHeap bounds the memory that swdt and the simulated node may hold during an attack, in bytes.
const mostHeap = 512 << 20

func streamAttacked(t *testing.T, call string, attack streamAttack) {
	user := streamUsers()[call]
	n := victim(t)
	n.Tamper(user.on(call, attack.tamper))
	here, folder := t.TempDir(), t.TempDir()
	workdir.Change(t, here)
	patience := 400 * time.Millisecond
	if attack.ends {
		patience = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	heap := watchHeap(t)
	ended := make(chan error, 1)
	go func() { ended <- user.work(ctx, n, folder) }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(patience + 2*time.Minute):
		t.Fatal("the work does not end with its context")
	}
	if attack.ends && ctx.Err() != nil {
		t.Errorf("went on for ever; it ended with %v", err)
	}
	if err != nil && len(err.Error()) > 2<<20 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	if most := heap(); most > mostHeap {
		t.Errorf("held %d MB", most>>20)
	}
	if left, err := os.ReadDir(here); err != nil || len(left) > 0 {
		t.Errorf("wrote %v to the current folder, %v", left, err)
	}
	if size := sizeOf(t, folder); size > 64<<20 {
		t.Errorf("wrote %d bytes", size)
	}
}

// watchHeap watches how much memory is in use, as each garbage collection finds it. Garbage does not count: a
// collection that a busy machine delays leaves more of it. The returned function ends the watch and returns the
// maximum, in bytes.
func watchHeap(t *testing.T) func() uint64 {
	stop, done := make(chan struct{}), make(chan uint64, 1)
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }) }
	t.Cleanup(end)
	usual := debug.SetGCPercent(100) // a collection that comes late finds less
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	go func() {
		var most uint64
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			metrics.Read(live)
			most = max(most, live[0].Value.Uint64())
			select {
			case <-stop:
				done <- most
				return
			case <-ticker.C:
			}
		}
	}()
	return func() uint64 { end(); return <-done }
}

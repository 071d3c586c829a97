package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/format/logline/slowlog"
	"github.com/swdt-dev/swdt/internal/platform"
)

// memoryFiles is one file in memory.
type memoryFiles struct {
	platform.Files
	content  []byte
	modified time.Time
}

func (f memoryFiles) Stat(string) (platform.FileInfo, error) {
	return platform.FileInfo{Size: int64(len(f.content)), Modified: f.modified}, nil
}

func (f memoryFiles) Open(string) (io.ReadSeekCloser, error) {
	return struct {
		*bytes.Reader
		io.Closer
	}{bytes.NewReader(f.content), io.NopCloser(nil)}, nil
}

// collected is a stream that keeps the data.
type collected struct {
	grpc.ServerStreamingServer[agentv1.TailReply]
	ctx  context.Context
	data []byte
}

func (c *collected) Send(r *agentv1.TailReply) error {
	c.data = append(c.data, r.GetData()...)
	return nil
}
func (c *collected) Context() context.Context { return c.ctx }

// sentSince returns what the agent sends of a file whose last write was just now.
func sentSince(t *testing.T, file []byte, now, since time.Time, step int64, run int) []byte {
	t.Helper()
	stream := &collected{ctx: t.Context()}
	request := &agentv1.TailRequest{Path: "x", Lines: -1, Since: timestamppb.New(since)}
	tail := newTailer(memoryFiles{content: file, modified: now}, request, stream, now)
	tail.step, tail.run = step, run
	_, err := tail.start()
	if err := errors.Join(err, tail.drain(true)); err != nil {
		t.Fatal(err)
	}
	return stream.data
}

// Of the text that the agent sends, a slow reading selects the same lines as of the whole file, at whatever
// offsets the agent looks into the file.
func TestSinceEqualsASlowReadingAtEveryOffset(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 2))
		lines := 1 + r.IntN(400)
		file := slowlog.Random(r, lines, now)
		since := now.Add(-time.Duration(r.IntN(lines+1)) * time.Second)
		o := slowlog.Options{Now: now, Since: since}
		want := slowlog.Read(file, o)
		for n := range 12 {
			step := 1 + r.Int64N(int64(len(file))+1)
			from := r.IntN(len(file))
			if at := strings.Index(file[from:], slowlog.Quoted); n < 6 && at >= 0 {
				step = int64(len(file) - from - at) // into the middle of a line, before what looks like a line
			}
			if got := slowlog.Read(string(sentSince(t, []byte(file), now, since, step, logline.Run)), o); !slices.Equal(got, want) {
				t.Errorf("seed %d, step %d: %d lines instead of %d", seed, step, len(got), len(want))
			}
		}
	}
}

// A log is taken to be older before a long run of lines that are. The offsets make no difference to that either.
func TestSinceBeginsBehindTheLastLongRun(t *testing.T) {
	const run = 130 // more than the lines that a reader remembers
	now := time.Now().UTC().Truncate(time.Second)
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 3))
		file := slowlog.Random(r, 1500, now)
		since := now.Add(-time.Duration(r.IntN(1500)) * time.Second)
		o := slowlog.Options{Now: now, Since: since, Run: run}
		want := slowlog.Read(file, o)
		o.Run = 0
		sizes := map[int]bool{}
		for range 12 {
			sent := sentSince(t, []byte(file), now, since, 1+r.Int64N(int64(len(file))+1), run)
			sizes[len(sent)] = true
			if got := slowlog.Read(string(sent), o); !slices.Equal(got, want) {
				t.Errorf("seed %d: %d lines instead of %d, of %d bytes", seed, len(got), len(want), len(sent))
			}
		}
		if len(sizes) != 1 {
			t.Errorf("seed %d: the text that is sent depends on the offsets: %v", seed, sizes)
		}
	}
}

// Of a large log, the agent sends little more than what is wanted.
func TestSinceSendsNoMoreThanIsWanted(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	var file bytes.Buffer
	for i := range 30_000 {
		at := now.Add(time.Duration(i-30_000) * time.Second)
		file.WriteString("I" + at.Format("0102 15:04:05.000000") + "    1234 x.go:1] \"a line\"\n")
	}
	sent := sentSince(t, file.Bytes(), now, now.Add(-100*time.Second), tailBlock, logline.Run)
	if lines := bytes.Count(sent, []byte("\n")); lines != 101 {
		t.Errorf("%d lines are sent, want 101: those of the last 100 s, and one that gives the reader the format", lines)
	}
}

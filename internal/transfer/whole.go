package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// chunkSize is what one message carries: large enough that messages cost
	// nothing, small enough to stay responsive on a slow link.
	chunkSize = 512 << 10
	// probeSize is what is sent first, compressed, to learn how fast the link is.
	probeSize = 2 << 20
	// longTime is how long bytes may take on the channel of all other calls.
	longTime = 2 * time.Second
	// longRest is what may take that long on a link that was not measured.
	longRest = 16 << 20
	// window of the compressor; it bounds the memory of both sides.
	window = 4 << 20
)

// whole sends all bytes. The first of them, compressed, tell whether the link
// is so fast that compressing the rest would only slow it down.
type whole struct{}

func (whole) send(ctx context.Context, s *sending, path string) (Result, error) {
	result := Result{Method: MethodWhole}
	file, err := os.Open(s.file.Path)
	if err != nil {
		return result, fmt.Errorf("read %s: %w", s.file.Path, err)
	}
	defer file.Close()
	leave, err := s.depot.enter(ctx)
	if err != nil {
		return result, err
	}
	defer leave()
	progress := s.reporter.Transfer(s.file.Label, s.file.Size)
	defer progress.End()

	u := &upload{sending: s, files: s.node.Files, file: file, path: path, progress: progress}
	err = u.run(ctx)
	result.SentBytes, result.Compressed = u.sent, u.compressed
	return result, err
}

// upload is one file on its way to one path.
type upload struct {
	*sending
	files      agentv1.FilesClient
	file       *os.File
	path       string
	progress   ui.Progress
	sent       int64 // over the link
	compressed bool
}

func (u *upload) run(ctx context.Context) error {
	have, err := u.have(ctx)
	if err != nil {
		return err
	}
	if have > u.sending.file.Size {
		have = -1
	}
	if have > 0 {
		u.reporter.Debug("%s: going on after %s that an earlier try sent", u.sending.file.Label, ui.Size(have))
		err := u.from(ctx, have)
		if err == nil || lost(err) || ctx.Err() != nil {
			return err
		}
		// Whatever the part was, it did not become the file: once from the start.
		u.reporter.Debug("%s: the earlier part is of no use: %v", u.sending.file.Label, err)
	}
	return u.from(ctx, 0)
}

// have is how much of the file an earlier try got across.
func (u *upload) have(ctx context.Context) (int64, error) {
	if u.sending.file.Absent {
		return -1, nil
	}
	return u.size(ctx, u.path)
}

// from sends everything after offset. A whole file of some size begins with a
// probe; to go on with a part, the node wants all the rest in one call.
func (u *upload) from(ctx context.Context, offset int64) error {
	size := u.sending.file.Size
	u.progress.Add(offset)
	if offset > 0 || size < 2*probeSize {
		if size-offset > longRest {
			if err := u.bulk(ctx); err != nil {
				return err
			}
		}
		_, err := u.write(ctx, offset, size, offset < size)
		return err
	}
	probe, err := u.write(ctx, 0, probeSize, true)
	if err != nil {
		return err
	}
	compress := probe.compressionPays()
	if probe.rest(size-probeSize, compress) > longTime {
		if err := u.bulk(ctx); err != nil {
			return err
		}
	}
	_, err = u.write(ctx, probeSize, size, compress)
	return err
}

// bulk leaves the channel that all other calls share.
func (u *upload) bulk(ctx context.Context) (err error) {
	if u.files, err = u.node.Bulk(ctx); err != nil {
		return u.failed(err)
	}
	return nil
}

// measure is what a write took.
type measure struct {
	plain, sent int64         // bytes before and after compression
	compressing time.Duration // of the processor
	total       time.Duration // until the node had it on its disk
}

// compressionPays is whether the compressor is faster than the link and makes
// the file noticeably smaller. Both run side by side, so the slower counts.
func (m measure) compressionPays() bool {
	if m.plain == 0 || m.total <= 0 {
		return true
	}
	ratio := float64(m.sent) / float64(m.plain)
	perByte := max(m.total-m.compressing, 0).Seconds() / float64(max(m.sent, 1)) // of the link
	compress := m.compressing.Seconds() / float64(m.plain)
	return max(ratio*perByte, compress) < 0.95*perByte
}

// rest is how long that many more bytes will take.
func (m measure) rest(bytes int64, compress bool) time.Duration {
	if compress {
		return time.Duration(m.total.Seconds() / float64(m.plain) * float64(bytes) * float64(time.Second))
	}
	perByte := max(m.total-m.compressing, 0).Seconds() / float64(max(m.sent, 1))
	return time.Duration(perByte * float64(bytes) * float64(time.Second))
}

// write sends the bytes [offset, end). Where end is the end of the file, the
// node verifies the whole.
func (u *upload) write(ctx context.Context, offset, end int64, compress bool) (measure, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the call where we give up on it
	defer cancel()
	begun := time.Now()
	stream, err := u.files.Write(ctx)
	if err != nil {
		return measure{}, u.failed(err)
	}
	header := &agentv1.WriteHeader{Path: u.path, Size: end, Offset: offset, Zstd: compress, MakeFolder: true}
	if end == u.sending.file.Size {
		header.Sha256 = u.sending.file.SHA256
		header.Modified = timestamppb.New(u.sending.file.Modified)
	}
	out := &messages{send: stream.Send, sent: &u.sent}
	m := measure{plain: end - offset}
	before := u.sent
	err = stream.Send(&agentv1.WriteRequest{Header: header})
	if err == nil {
		m.compressing, err = u.pump(ctx, out, offset, end, compress)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return m, u.failed(err)
	}
	// io.EOF from Send means that the node has ended the call; it says why here.
	reply, err := stream.CloseAndRecv()
	if err != nil {
		return m, u.failed(err)
	}
	if reply.GetSize() != end {
		return m, fmt.Errorf("send %s: the node has %d bytes of %d: run the command again", u.sending.file.Label, reply.GetSize(), end)
	}
	m.sent, m.total = u.sent-before, time.Since(begun)
	u.compressed = u.compressed || compress
	if compress && u.depot != nil {
		u.depot.costs.sawCompress(m.plain, m.sent, m.compressing)
		if end == u.sending.file.Size {
			u.depot.remember()
		}
	}
	return m, nil
}

func (u *upload) failed(err error) error {
	return fmt.Errorf("send %s to %s: %w", u.sending.file.Label, u.path, err)
}

// pump moves the bytes from the file through the compressor into messages, and
// returns the time that compressing took.
func (u *upload) pump(ctx context.Context, out *messages, offset, end int64, compress bool) (time.Duration, error) {
	var to io.Writer = out
	var encoder *zstd.Encoder
	if compress {
		var err error
		encoder, err = zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(window), zstd.WithEncoderCRC(false)) // the node verifies SHA-256
		if err != nil {
			return 0, fmt.Errorf("compress: %w", err)
		}
		to = encoder
	}
	var spent time.Duration
	section := io.NewSectionReader(u.file, offset, end-offset)
	buffer := make([]byte, chunkSize)
	for {
		if err := ctx.Err(); err != nil {
			return spent, context.Cause(ctx)
		}
		n, err := io.ReadFull(section, buffer)
		if n > 0 {
			begun, sending := time.Now(), out.spent
			if _, err := to.Write(buffer[:n]); err != nil {
				return spent, err
			}
			spent += time.Since(begun) - (out.spent - sending)
			u.progress.Add(int64(n))
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return spent, fmt.Errorf("read %s: %w", u.sending.file.Path, err)
		}
	}
	if encoder != nil {
		if err := encoder.Close(); err != nil {
			return spent, err
		}
	}
	return spent, out.flush()
}

// messages is the io.Writer that fills one message after the other.
type messages struct {
	send    func(*agentv1.WriteRequest) error
	sent    *int64
	spent   time.Duration // in send
	pending bytes.Buffer
}

func (m *messages) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := min(len(p), chunkSize-m.pending.Len())
		m.pending.Write(p[:n])
		p = p[n:]
		if m.pending.Len() == chunkSize {
			if err := m.flush(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

func (m *messages) flush() error {
	if m.pending.Len() == 0 {
		return nil
	}
	data := bytes.Clone(m.pending.Bytes()) // gRPC may keep a message until it is on the wire
	m.pending.Reset()
	begun := time.Now()
	err := m.send(&agentv1.WriteRequest{Data: data})
	m.spent += time.Since(begun)
	if err == nil {
		*m.sent += int64(len(data))
	}
	return err
}

// lost is whether the connection has gone, so that only a new one helps.
func lost(err error) bool {
	var gone *node.LostError
	return errors.As(err, &gone)
}

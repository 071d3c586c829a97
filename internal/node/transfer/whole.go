package transfer

import (
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
	// chunkSize is the size of the part of a file that one message carries. It is large enough
	// that the cost of messages does not matter, and small enough to stay responsive on a slow
	// link.
	chunkSize = 512 << 10
	// informative is the smallest send, in bytes, whose time is recorded as a measurement, and for
	// which measuring the link is worthwhile.
	informative = 2 << 20
	// longTime is how long a transfer may take on the channel that all other calls share. A
	// transfer that takes longer uses the bulk channel.
	longTime = 2 * time.Second
	// longRest is the size, in bytes, of the largest transfer on the shared channel if the link was
	// not measured.
	longRest = 16 << 20
	// window is the window of the compressor, in bytes. It bounds the memory on both sides.
	window = 4 << 20
)

// whole sends all bytes, compressed unless the link is so fast that compressing would only slow the
// transfer down.
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

// upload is the upload of one file to one path.
type upload struct {
	*sending
	files      agentv1.FilesClient
	file       *os.File
	path       string
	progress   ui.Progress
	sent       int64 // bytes sent over the link
	compressed bool
}

func (u *upload) run(ctx context.Context) error {
	have, err := u.alreadySent(ctx)
	if err != nil {
		return err
	}
	if have > u.sending.file.Size {
		have = -1
	}
	if have > 0 {
		u.reporter.Debug("%s: continuing after %s that an earlier try sent", u.sending.file.Label, ui.Size(have))
		err := u.from(ctx, have)
		if err == nil || connectionLost(err) || ctx.Err() != nil {
			return err
		}
		// The part was of another file: send everything from the start.
		u.reporter.Debug("%s: the earlier part is of no use: %v", u.sending.file.Label, err)
	}
	return u.from(ctx, 0)
}

// alreadySent returns how many bytes of the file an earlier try has sent, or -1 if there is no part
// of an earlier try.
func (u *upload) alreadySent(ctx context.Context) (int64, error) {
	if u.sending.file.Absent {
		return -1, nil
	}
	return u.size(ctx, u.path)
}

// from sends everything after offset.
func (u *upload) from(ctx context.Context, offset int64) error {
	size := u.sending.file.Size
	u.progress.Add(offset)
	rest := size - offset
	if rest < informative {
		return u.write(ctx, offset, rest > 0)
	}
	link := u.link(ctx, rest, func() {})
	way := u.costs().of(u.sending.file.Label).whole(rest, link)
	u.reporter.Debug("%s: the link takes %s/s, %s there and back: %s", u.sending.file.Label,
		ui.Size(int64(link.BytesPerSecond)), ui.Seconds(link.RoundTrip), way)
	long := way.seconds > longTime.Seconds()
	if link.BytesPerSecond == 0 {
		long = rest > longRest
	}
	if long {
		if err := u.bulk(ctx); err != nil {
			return err
		}
	}
	begun, before := time.Now(), u.sent
	if err := u.write(ctx, offset, way.compressed); err != nil {
		return err
	}
	u.recordCosts(link, rest, u.sent-before, way.compressed, time.Since(begun))
	return nil
}

// recordCosts records the costs of the send for the next send.
func (u *upload) recordCosts(link node.Reading, plain, sent int64, compressed bool, took time.Duration) {
	u.costs().recordWhole(plain, sent, compressed, link, took)
	if u.depot != nil {
		u.depot.remember()
	}
}

// bulk makes the upload use the bulk channel instead of the channel that all other calls share.
func (u *upload) bulk(ctx context.Context) (err error) {
	if u.files, err = u.node.Bulk(ctx); err != nil {
		return u.failed(err)
	}
	return nil
}

// write sends the bytes from offset on. The node verifies the whole file.
func (u *upload) write(ctx context.Context, offset int64, compress bool) error {
	ctx, cancel := context.WithCancel(ctx) // ends the call if write returns first
	defer cancel()
	stream, err := u.files.Write(ctx)
	if err != nil {
		return u.failed(err)
	}
	file := u.sending.file
	err = stream.Send(&agentv1.WriteRequest{Header: &agentv1.WriteHeader{
		Path: u.path, Size: file.Size, Offset: offset, Zstd: compress, MakeFolder: true,
		Fresh: true, Sddl: file.SDDL,
		Sha256: file.SHA256, Modified: timestamppb.New(file.Modified),
	}})
	if err == nil {
		err = u.pump(ctx, &messages{send: stream.Send, sent: &u.sent}, offset, compress)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return u.failed(err)
	}
	// io.EOF from Send means that the node has ended the call; CloseAndRecv returns the cause.
	reply, err := stream.CloseAndRecv()
	if err != nil {
		return u.failed(err)
	}
	if reply.GetSize() != file.Size {
		return fmt.Errorf("send %s: the node has %d bytes of %d: run the command again", file.Label,
			reply.GetSize(), file.Size)
	}
	if reply.GetSha256() != file.SHA256 {
		return fmt.Errorf("send %s: the node has a different file now (SHA-256 %.12q): run the command again",
			file.Label, reply.GetSha256())
	}
	u.compressed = u.compressed || compress
	return nil
}

func (u *upload) failed(err error) error {
	return fmt.Errorf("send %s to %s: %w", u.sending.file.Label, u.path, err)
}

// pump writes the file's bytes from offset on as messages, compressed if compress is set.
func (u *upload) pump(ctx context.Context, out *messages, offset int64, compress bool) error {
	to, end := io.Writer(out), func() error { return nil }
	if compress {
		encoder, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(window), zstd.WithEncoderCRC(false)) // no CRC, since the node verifies the SHA-256
		if err != nil {
			return fmt.Errorf("compress: %w", err)
		}
		to, end = encoder, encoder.Close
	}
	section := io.NewSectionReader(u.file, offset, u.sending.file.Size-offset)
	buffer := make([]byte, chunkSize)
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(section, buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
			u.progress.Add(int64(n))
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", u.sending.file.Path, err)
		}
	}
	if err := end(); err != nil {
		return err
	}
	return out.flush()
}

// messages is an io.Writer that fills one message after another.
type messages struct {
	send    func(*agentv1.WriteRequest) error
	sent    *int64
	pending []byte
}

func (m *messages) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		if m.pending == nil { // gRPC may still use an earlier message's buffer, so this message gets a new one
			m.pending = make([]byte, 0, chunkSize)
		}
		n := min(len(p), chunkSize-len(m.pending))
		m.pending, p = append(m.pending, p[:n]...), p[n:]
		if len(m.pending) == chunkSize {
			if err := m.flush(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

func (m *messages) flush() error {
	if len(m.pending) == 0 {
		return nil
	}
	data := m.pending
	m.pending = nil
	err := m.send(&agentv1.WriteRequest{Data: data})
	if err == nil {
		*m.sent += int64(len(data))
	}
	return err
}

// connectionLost reports whether the connection has broken, so that only a new connection
// helps.
func connectionLost(err error) bool {
	var gone *node.LostError
	return errors.As(err, &gone)
}

package agent

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/delta"
)

type patchStream = grpc.ClientStreamingServer[agentv1.PatchRequest, agentv1.PatchReply]

// Patch makes the new file while the patch arrives, in bounded memory: nothing
// but the base is read back, and the output is written as it comes. Whatever goes
// wrong, a lost connection too, what was made so far is removed: a patch is
// small, and is sent again.
func (s *filesService) Patch(stream patchStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	header := first.GetHeader()
	if err := checkPatchHeader(header); err != nil {
		return err
	}
	begun := time.Now()
	base, size, err := s.openBase(stream.Context(), header)
	if err != nil {
		return err
	}
	defer base.Close()
	body := &bodyReader[*agentv1.PatchRequest]{stream: stream, data: first.GetData()}
	sha, err := s.patch(stream.Context(), header, base, size, body)
	if err != nil {
		return errors.Join(err, s.discard(header.GetPath()))
	}
	if err := s.host.Files.Rename(header.GetPath(), header.GetRenameTo(), true); err != nil {
		return errors.Join(fmt.Errorf("give the patched file its name: %w", err), s.discard(header.GetPath()))
	}
	return stream.SendAndClose(&agentv1.PatchReply{
		Size: header.GetSize(), Sha256: sha, Applying: durationpb.New(time.Since(begun)),
	})
}

func checkPatchHeader(h *agentv1.PatchHeader) error {
	wrong := func(format string, args ...any) error {
		return status.Errorf(codes.InvalidArgument, "patch %s: %s", h.GetPath(), fmt.Sprintf(format, args...))
	}
	switch {
	case h.GetPath() == "" || h.GetBase() == "" || h.GetRenameTo() == "":
		return status.Error(codes.InvalidArgument, "patch a file: the first message has no header with a base, a path and a name")
	case h.GetSize() < 0:
		return wrong("negative size %d", h.GetSize())
	case strings.EqualFold(h.GetPath(), h.GetBase()):
		return wrong("it cannot be its own base")
	case !isHash(h.GetSha256()) || !isHash(h.GetBaseSha256()):
		return wrong("%q and %q must both be a SHA-256", h.GetSha256(), h.GetBaseSha256())
	case h.GetModified() != nil && h.GetModified().CheckValid() != nil:
		return wrong("invalid time of change")
	}
	return nil
}

func isHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

// openBase opens the file that the patch is against, and refuses another one.
// Once open it stays the same file, even if somebody renames another to its name.
func (s *filesService) openBase(ctx context.Context, h *agentv1.PatchHeader) (*readerAt, int64, error) {
	file, err := s.host.Files.Open(h.GetBase())
	if err != nil {
		return nil, 0, err
	}
	sha, size, err := s.cache.Hash(ctx, h.GetBase())
	if err == nil && !strings.EqualFold(sha, h.GetBaseSha256()) {
		err = status.Errorf(codes.FailedPrecondition, "patch %s: %s is another file by now (SHA-256 %.12s, not %.12s)",
			h.GetPath(), h.GetBase(), sha, h.GetBaseSha256())
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return &readerAt{file: file}, size, nil
}

// patch writes the new file and checks what is on the disk afterwards.
func (s *filesService) patch(ctx context.Context, h *agentv1.PatchHeader, base io.ReaderAt, size int64, body io.Reader) (string, error) {
	write := &agentv1.WriteHeader{
		Path: h.GetPath(), Size: h.GetSize(), Sha256: h.GetSha256(), MakeFolder: h.GetMakeFolder(), Modified: h.GetModified(),
		Fresh: true, Sddl: h.GetSddl(),
	}
	return s.write(ctx, write, func(to io.Writer) error {
		buffer := bufio.NewWriterSize(&bounded{to: to, left: h.GetSize()}, readChunk)
		info, err := delta.Make(ctx, base, size, body, buffer) // what is on the disk is hashed
		if err == nil {
			err = buffer.Flush()
		}
		if err == nil && info.NewSize != h.GetSize() {
			err = status.Errorf(codes.InvalidArgument, "patch %s: the patch makes %d bytes, %d were declared", h.GetPath(), info.NewSize, h.GetSize())
		}
		if err != nil {
			return patchError(h.GetPath(), err)
		}
		return expectEnd(body)
	})
}

// patchError tells a patch that is damaged from a disk that is full.
func patchError(path string, err error) error {
	var damaged *delta.CorruptError
	if errors.As(err, &damaged) {
		return status.Errorf(codes.DataLoss, "patch %s: %v", path, err)
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return fmt.Errorf("patch %s: %w", path, err)
}

// expectEnd is an error where more was sent than the patch.
func expectEnd(body io.Reader) error {
	n, err := io.ReadFull(body, make([]byte, 1))
	if n > 0 {
		return status.Error(codes.InvalidArgument, "more was sent than the patch")
	}
	if err != io.EOF {
		return err
	}
	return nil
}

// bounded writes no more than was declared, whatever a patch claims.
type bounded struct {
	to   io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, status.Error(codes.InvalidArgument, "the patch makes more than the declared size")
	}
	n, err := b.to.Write(p)
	b.left -= int64(n)
	return n, err
}

// readerAt reads anywhere in a file that can seek.
type readerAt struct {
	mu   sync.Mutex
	file io.ReadSeekCloser
}

func (r *readerAt) Close() error { return r.file.Close() }

func (r *readerAt) ReadAt(p []byte, offset int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r.file, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// Probe lets swdt see how long bytes take to get here.
func (s *filesService) Probe(stream grpc.BidiStreamingServer[agentv1.ProbeRequest, agentv1.ProbeReply]) error {
	for {
		_, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&agentv1.ProbeReply{}); err != nil {
			return err
		}
	}
}

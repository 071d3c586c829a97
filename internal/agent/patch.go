package agent

import (
	"cmp"
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
	"github.com/swdt-dev/swdt/internal/wire/delta"
)

type patchStream = grpc.ClientStreamingServer[agentv1.PatchRequest, agentv1.PatchReply]

// Patch makes the new file while the patch arrives, in bounded memory: it reads the base in parts,
// and writes each part of the new file at once. After any failure, including a lost connection,
// Patch removes the partial file; swdt can send the patch again, since a patch is small.
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
	if err := s.patience().Rename(stream.Context(), header.GetPath(), header.GetRenameTo(), true); err != nil {
		return errors.Join(fmt.Errorf("rename the patched file: %w", err), s.discard(header.GetPath()))
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
		return status.Error(codes.InvalidArgument,
			"patch a file: the first message has no header with a base, a path and a name")
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

// openBase opens the base, the file that the patch applies to. It returns an error if the base does
// not have the hash in the header. The open file stays the same even if another process renames
// another file to the path of the base.
func (s *filesService) openBase(ctx context.Context, h *agentv1.PatchHeader) (*readerAt, int64, error) {
	file, err := s.platform.Files.Open(h.GetBase())
	if err != nil {
		return nil, 0, err
	}
	sha, size, err := s.cache.Hash(ctx, h.GetBase())
	if err == nil && !strings.EqualFold(sha, h.GetBaseSha256()) {
		err = status.Errorf(codes.FailedPrecondition,
			"patch %s: %s is not the expected file (SHA-256 %.12s, not %.12s)",
			h.GetPath(), h.GetBase(), sha, h.GetBaseSha256())
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return &readerAt{file: file}, size, nil
}

// patch writes the new file, reads it back from the disk to verify it, and returns its SHA-256.
func (s *filesService) patch(ctx context.Context, h *agentv1.PatchHeader, base io.ReaderAt, size int64,
	body io.Reader) (string, error) {
	write := &agentv1.WriteHeader{
		Path: h.GetPath(), Size: h.GetSize(), Sha256: h.GetSha256(), MakeFolder: h.GetMakeFolder(),
		Modified: h.GetModified(),
		Fresh:    true, Sddl: h.GetSddl(),
	}
	return s.write(ctx, write, func(to io.Writer) error {
		behind := newWriteBehind(&bounded{to: to, left: h.GetSize()})
		info, err := delta.Make(ctx, base, size, body, behind) // not delta.Apply: the hash is computed from the disk
		err = cmp.Or(behind.Close(), err)                      // the first cause
		if err == nil && info.NewSize != h.GetSize() {
			err = status.Errorf(codes.InvalidArgument, "patch %s: the patch makes %d bytes, but %d were declared",
				h.GetPath(), info.NewSize, h.GetSize())
		}
		if err != nil {
			return patchError(h.GetPath(), err)
		}
		return expectEnd(body)
	})
}

// patchError returns an error with the code DataLoss for a damaged patch, so that the caller can
// distinguish it from other failures, such as a full disk.
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

// expectEnd returns an error if the caller sent more bytes after the end of the patch.
func expectEnd(body io.Reader) error {
	n, err := io.ReadFull(body, make([]byte, 1))
	if n > 0 {
		return status.Error(codes.InvalidArgument, "the stream continues after the end of the patch")
	}
	if err != io.EOF {
		return err
	}
	return nil
}

// bounded returns an error for a write beyond the declared size of the new file, whatever the patch
// contains.
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

// readerAt implements io.ReaderAt for a file that can seek.
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

// Probe acknowledges each message, so that swdt can measure how long bytes take
// to arrive.
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

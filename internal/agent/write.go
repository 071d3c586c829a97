package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	acl "github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// maxZstdWindow limits the memory of a decoder; zstd's highest ordinary level
// needs 32 MiB.
const maxZstdWindow = 32 << 20

type (
	writeStream = grpc.ClientStreamingServer[agentv1.WriteRequest, agentv1.WriteReply]
	writeBody   = bodyReader[*agentv1.WriteRequest]
)

// Write receives a file in bounded memory. The state of the file after a failure
// depends on the cause:
//
//   - If the file could not be opened, it stays as it was.
//   - If the stream broke, the bytes that arrived stay. The next Write can continue
//     the file: its offset must be the file's size, and it must have a sha256.
//   - After any other failure (more or fewer bytes than declared, a wrong hash, a
//     full disk, damaged compression) the file is removed, since it is of no use.
//
// The file is written in place. A caller that needs the old file until the new one is complete
// writes the new file beside the old one and renames it.
func (s *filesService) Write(stream writeStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	header := first.GetHeader()
	if err := checkHeader(header); err != nil {
		return err
	}
	body := &writeBody{stream: stream, data: first.GetData()}
	sha, err := s.write(stream.Context(), header, func(to io.Writer) error { return copyBody(to, header, body) })
	var unopened *openError
	switch {
	case errors.As(err, &unopened):
		return unopened.err // nothing was written, so the file stays
	case err != nil && body.broken == nil:
		return errors.Join(err, s.discard(header.GetPath()))
	case err != nil:
		return err
	}
	return stream.SendAndClose(&agentv1.WriteReply{Size: header.GetSize(), Sha256: sha})
}

func checkHeader(h *agentv1.WriteHeader) error {
	wrong := func(format string, args ...any) error {
		return status.Errorf(codes.InvalidArgument, "write %s: %s", h.GetPath(), fmt.Sprintf(format, args...))
	}
	sum, err := hex.DecodeString(h.GetSha256())
	switch {
	case h.GetPath() == "":
		return status.Error(codes.InvalidArgument, "write a file: the first message has no header with a path")
	case h.GetSize() < 0:
		return wrong("negative size %d", h.GetSize())
	case h.GetOffset() < 0 || h.GetOffset() > h.GetSize():
		return wrong("offset %d is outside of the file's %d bytes", h.GetOffset(), h.GetSize())
	case h.GetSha256() != "" && (err != nil || len(sum) != sha256.Size):
		return wrong("%q is not a SHA-256", h.GetSha256())
	case h.GetOffset() > 0 && h.GetSha256() == "":
		return wrong("continuing a partial file requires the sha256 of the whole file")
	case h.GetOffset() > 0 && h.GetNewOnly():
		return wrong("a file cannot be both new and continued at %d", h.GetOffset())
	case h.GetModified() != nil && h.GetModified().CheckValid() != nil:
		return wrong("invalid time of change")
	}
	return nil
}

func (s *filesService) openForWrite(ctx context.Context, h *agentv1.WriteHeader) (platform.WriteFile, error) {
	if h.GetMakeFolder() {
		if parent := parentFolder(h.GetPath()); parent != "" {
			if err := s.platform.Files.MakeFolder(parent); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case h.GetOffset() > 0:
		return s.openToContinue(h)
	case h.GetFresh():
		return s.createFresh(ctx, h)
	}
	mode := platform.CreateTruncate
	if h.GetNewOnly() {
		mode = platform.CreateNew
	}
	return s.platform.Files.Create(h.GetPath(), mode)
}

// createFresh replaces any file at the header's path by a new file on which no other account has a
// handle. Windows Server 2019 frees the name of a removed file when the last program closes it: until then, access to the
// name is denied.
func (s *filesService) createFresh(ctx context.Context, h *agentv1.WriteHeader) (file platform.WriteFile, err error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := s.patience().Remove(ctx, h.GetPath())
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return nil, err
		}
		err = s.patience().Repeat(ctx, h.GetPath, fault.IsHeld, func() (err error) {
			file, err = s.platform.Files.NewFile(h.GetPath(), h.GetSddl())
			return err
		})
		if !errors.Is(err, fault.ErrExist) || attempt == attempts {
			return file, err
		}
	}
}

func (s *filesService) openToContinue(h *agentv1.WriteHeader) (platform.WriteFile, error) {
	info, err := s.platform.Files.Stat(h.GetPath())
	if err != nil {
		return nil, err
	}
	if info.Size != h.GetOffset() {
		return nil, status.Errorf(codes.FailedPrecondition,
			"continue %s at %d: it has %d bytes; send it from the beginning", h.GetPath(), h.GetOffset(), info.Size)
	}
	file, err := s.platform.Files.Create(h.GetPath(), platform.CreateAppend)
	if err != nil {
		return nil, err
	}
	if h.GetFresh() && s.platform.Files.KeepsACL() && (info.Link || !isOurs(file, h.GetSddl() != "")) {
		return nil, errors.Join(status.Errorf(codes.FailedPrecondition,
			"continue %s: another account made it or has access to it; send it from the beginning", h.GetPath()),
			file.Close())
	}
	return file, nil
}

// isOurs reports whether swdt can have made the open file. If restricted is set, no other account
// may have access to the file. If restricted is not set, a trusted account, such as SYSTEM, must
// own the file.
func isOurs(file platform.WriteFile, restricted bool) bool {
	sddl, err := platform.ACLOf(file)
	if err != nil {
		return false
	}
	list, err := acl.Parse(sddl)
	if err != nil {
		return false
	}
	return list.Exclusive() || !restricted && acl.Trusted(list.Owner)
}

// parentFolder returns the parent of a path, or "" if it has none. The path is a Windows path on
// every OS.
func parentFolder(path string) string {
	i := strings.LastIndexAny(path, `\/`)
	if i < 0 {
		return ""
	}
	return path[:i+1]
}

// openError reports a file that could not be opened and so was not changed.
type openError struct{ err error }

func (e *openError) Error() string { return e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// write opens the file, calls the function `fill` to write it, and compares the content on the disk
// with the size and hash in the header. It returns the hash.
func (s *filesService) write(ctx context.Context, h *agentv1.WriteHeader, fill func(io.Writer) error) (string, error) {
	opened, err := s.openForWrite(ctx, h)
	if err != nil {
		return "", &openError{err}
	}
	file, err := newReadBack(ctx, s.platform.Files, h.GetPath(), h.GetOffset(), opened)
	if err != nil {
		return "", errors.Join(fmt.Errorf("write %s: %w", h.GetPath(), err), opened.Close())
	}
	err = fill(file)
	if err == nil {
		err = file.Sync()
	}
	if err == nil && h.GetModified() != nil {
		err = file.SetModified(h.GetModified().AsTime())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		if _, ok := status.FromError(err); ok {
			return "", err
		}
		return "", fmt.Errorf("write %s: %w", h.GetPath(), err)
	}
	return s.verify(h, file)
}

// copyBody writes exactly the bytes that the header announces.
func copyBody(to io.Writer, h *agentv1.WriteHeader, body *writeBody) error {
	from, end, err := plainBody(h, body)
	if err != nil {
		return err
	}
	defer end()
	want := h.GetSize() - h.GetOffset()
	got, err := io.CopyBuffer(onlyWriter{to}, io.LimitReader(from, want), make([]byte, readChunk))
	if err != nil {
		return err
	}
	if got < want {
		return status.Errorf(codes.InvalidArgument, "write %s: %d bytes were declared, but %d were sent",
			h.GetPath(), h.GetSize(), h.GetOffset()+got)
	}
	more, err := io.ReadFull(from, make([]byte, 1))
	if more > 0 {
		return status.Errorf(codes.InvalidArgument, "write %s: more bytes were sent than the declared %d",
			h.GetPath(), h.GetSize())
	}
	if err != io.EOF {
		return err
	}
	return nil
}

// plainBody returns the decompressed body. The decoder runs in the reader's
// goroutine.
func plainBody(h *agentv1.WriteHeader, body *writeBody) (from io.Reader, end func(), err error) {
	if !h.GetZstd() {
		return body, func() {}, nil
	}
	decoder, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return nil, nil, fmt.Errorf("write %s: %w", h.GetPath(), err)
	}
	return &zstdReader{decoder, body, h.GetPath()}, decoder.Close, nil
}

// zstdReader distinguishes damaged compression from a broken stream in its
// errors.
type zstdReader struct {
	decoder *zstd.Decoder
	body    *writeBody
	path    string
}

func (r *zstdReader) Read(p []byte) (int, error) {
	n, err := r.decoder.Read(p)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case r.body.broken != nil:
		return n, r.body.broken
	default:
		return n, status.Errorf(codes.InvalidArgument, "write %s: the compressed data is damaged: %v", r.path, err)
	}
}

// verify compares a closed file with the header. It stores the hash in the cache, since the swap
// needs it again.
func (s *filesService) verify(h *agentv1.WriteHeader, file *readBack) (string, error) {
	sha, size := file.hash()
	if size != h.GetSize() || h.GetSha256() != "" && !strings.EqualFold(sha, h.GetSha256()) {
		return "", status.Errorf(codes.DataLoss,
			"write %s: the disk has %d bytes with SHA-256 %.12s, but %d bytes with SHA-256 %.12s were sent; "+
				"send the file again",
			h.GetPath(), size, sha, h.GetSize(), h.GetSha256())
	}
	s.cache.Learn(h.GetPath(), sha, size, h.GetModified().AsTime())
	return sha, nil
}

func (s *filesService) discard(path string) error {
	if err := s.platform.Files.Remove(path); err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("remove the written file: %w", err)
	}
	return nil
}

// message is a message of a call that carries bytes.
type message interface{ GetData() []byte }

// bodyReader reads the data of a call as one stream of bytes.
type bodyReader[M message] struct {
	stream interface{ Recv() (M, error) }
	data   []byte
	broken error // the error that ended the stream; nil if the stream was complete
}

func (r *bodyReader[M]) Read(p []byte) (int, error) {
	for len(r.data) == 0 {
		request, err := r.stream.Recv()
		if err != nil {
			if err != io.EOF {
				r.broken = err
			}
			return 0, err
		}
		r.data = request.GetData()
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

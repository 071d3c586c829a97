package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/internal/messages"
	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// readChunk is the number of bytes of a file or of a command's output in one
// message.
const readChunk = 512 << 10

type filesService struct {
	agentv1.UnimplementedFilesServer
	*session
	cache *hashcache.Cache
}

func (s *filesService) Stat(_ context.Context, request *agentv1.StatRequest) (*agentv1.FileInfo, error) {
	info, err := s.platform.Files.Stat(request.GetPath())
	if err != nil {
		return nil, err
	}
	return fileInfo(info), nil
}

func (s *filesService) List(_ context.Context, request *agentv1.ListFilesRequest) (*agentv1.ListFilesReply, error) {
	entries, err := s.platform.Files.List(request.GetPath())
	if err != nil {
		return nil, err
	}
	reply := &agentv1.ListFilesReply{}
	for _, entry := range entries {
		reply.Entries = append(reply.Entries, fileInfo(entry))
	}
	return reply, nil
}

func fileInfo(info platform.FileInfo) *agentv1.FileInfo {
	return &agentv1.FileInfo{
		Path:     info.Path,
		Size:     info.Size,
		Modified: messages.Timestamp(info.Modified),
		Folder:   info.Folder,
		ReadOnly: info.ReadOnly,
		Link:     info.Link,
	}
}

func (s *filesService) Hash(ctx context.Context, request *agentv1.HashRequest) (*agentv1.HashReply, error) {
	sha, size, err := s.cache.Hash(ctx, request.GetPath())
	if err != nil {
		return nil, err
	}
	return &agentv1.HashReply{Sha256: sha, Size: size}, nil
}

func (s *filesService) Read(request *agentv1.ReadRequest, stream grpc.ServerStreamingServer[agentv1.ReadReply]) error {
	if request.GetOffset() < 0 {
		return status.Errorf(codes.InvalidArgument, "read %s: negative offset %d", request.GetPath(),
			request.GetOffset())
	}
	file, err := s.platform.Files.Open(request.GetPath())
	if err != nil {
		return err
	}
	defer file.Close()
	if err := seek(file, request); err != nil {
		return err
	}
	buffer := make([]byte, readChunk)
	for {
		n, err := io.ReadFull(file, buffer)
		if n > 0 {
			if err := stream.Send(&agentv1.ReadReply{Data: buffer[:n]}); err != nil {
				return err // for example, the client has disconnected
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", request.GetPath(), err)
		}
	}
}

func seek(file io.Seeker, request *agentv1.ReadRequest) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("read %s: %w", request.GetPath(), err)
	}
	if request.GetOffset() > size {
		return status.Errorf(codes.OutOfRange, "read %s: the file has %d bytes, so the read cannot begin at %d",
			request.GetPath(), size, request.GetOffset())
	}
	if _, err := file.Seek(request.GetOffset(), io.SeekStart); err != nil {
		return fmt.Errorf("read %s: %w", request.GetPath(), err)
	}
	return nil
}

// patience returns the way in which the session's calls wait for files that other programs hold.
func (s *filesService) patience() patience.Patience {
	return patience.Patience{Files: s.platform.Files, Limit: patience.Short}
}

func (s *filesService) Rename(ctx context.Context, request *agentv1.RenameRequest) (*agentv1.RenameReply, error) {
	if err := s.patience().Rename(ctx, request.GetFrom(), request.GetTo(), request.GetReplace()); err != nil {
		return nil, err
	}
	return &agentv1.RenameReply{}, nil
}

func (s *filesService) Remove(ctx context.Context, request *agentv1.RemoveRequest) (*agentv1.RemoveReply, error) {
	remove := s.patience().Remove
	if request.GetRecursive() {
		remove = s.removeTree
	}
	if err := remove(ctx, request.GetPath()); err != nil {
		return nil, err
	}
	return &agentv1.RemoveReply{}, nil
}

// removeTree removes a file, or a folder with everything below it. It removes
// links without following them. (os.RemoveAll does the same on Windows, but
// does not work under Wine 8.)
func (s *filesService) removeTree(ctx context.Context, path string) error {
	if isVolume(path) {
		return status.Errorf(codes.InvalidArgument, "remove %s: that is a whole volume; name a folder on it", path)
	}
	info, err := s.platform.Files.Stat(path)
	if err != nil {
		return err
	}
	if info.Folder && !info.Link {
		entries, err := s.platform.Files.List(path)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("remove %s: %w", path, err)
			}
			if err := s.removeTree(ctx, entry.Path); err != nil {
				return err
			}
		}
	}
	// A file that was removed a moment ago may still be in its folder: see createFresh.
	notYet := func(err error) bool {
		return errors.Is(err, fault.ErrInUse) || info.Folder && errors.Is(err, fault.ErrExist)
	}
	return s.patience().Repeat(ctx, func() string { return path }, notYet, func() error {
		return s.platform.Files.Remove(path)
	})
}

// isVolume reports whether path is a volume: C:, C:\ or an equivalent such as
// C:\k\..
func isVolume(path string) bool {
	path = strings.ReplaceAll(path, "/", `\`)
	rest, drive := path, false
	if len(path) >= 2 && path[1] == ':' {
		rest, drive = path[2:], true
	}
	depth := 0
	for _, part := range strings.Split(rest, `\`) {
		switch part {
		case "", ".":
		case "..":
			depth = max(0, depth-1)
		default:
			depth++
		}
	}
	return drive && depth == 0
}

func (s *filesService) MakeFolder(_ context.Context, request *agentv1.MakeFolderRequest) (
	*agentv1.MakeFolderReply, error) {
	make := s.platform.Files.MakeFolder
	if sddl := request.GetSddl(); sddl != "" {
		make = func(path string) error { return s.platform.Files.NewFolder(path, sddl) }
	}
	if err := make(request.GetPath()); err != nil {
		return nil, err
	}
	return &agentv1.MakeFolderReply{}, nil
}

func (s *filesService) GetACL(_ context.Context, request *agentv1.GetACLRequest) (*agentv1.GetACLReply, error) {
	sddl, err := s.platform.Files.ACL(request.GetPath())
	if err != nil {
		return nil, err
	}
	return &agentv1.GetACLReply{Sddl: sddl}, nil
}

func (s *filesService) SetACL(_ context.Context, request *agentv1.SetACLRequest) (*agentv1.SetACLReply, error) {
	if err := s.platform.Files.SetACL(request.GetPath(), request.GetSddl()); err != nil {
		return nil, err
	}
	return &agentv1.SetACLReply{}, nil
}

package selftest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// chunk is the size of the messages in which claims send files, in bytes.
const chunk = 64 << 10

// sample returns bytes that no compression makes much smaller, the same in each run.
func sample(size int) []byte {
	content := make([]byte, 0, size+sha256.Size)
	sum := sha256.Sum256([]byte("swdt selftest"))
	for len(content) < size {
		content = append(content, sum[:]...)
		sum = sha256.Sum256(sum[:])
	}
	return content[:size]
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// write writes the part of a file from the header's offset on.
func (t *trial) write(ctx context.Context, header *agentv1.WriteHeader, content []byte) (*agentv1.WriteReply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := t.node.Files.Write(ctx)
	if err != nil {
		return nil, err
	}
	request := &agentv1.WriteRequest{Header: header}
	for {
		n := min(len(content), chunk)
		request.Data, content = content[:n], content[n:]
		if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(content) == 0 {
			return stream.CloseAndRecv()
		}
		request = &agentv1.WriteRequest{}
	}
}

// read reads a whole file of at most a few megabytes.
func (t *trial) read(ctx context.Context, path string, limit int) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := t.node.Files.Read(ctx, &agentv1.ReadRequest{Path: path})
	if err != nil {
		return nil, err
	}
	var content []byte
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
		if content = append(content, reply.GetData()...); len(content) > limit {
			return nil, fmt.Errorf("the node sends more than the %d bytes of the file", limit)
		}
	}
}

// roundTrip writes a file, and checks that the node has it and sends it back unchanged.
func (t *trial) roundTrip(ctx context.Context, path string, content []byte) error {
	header := &agentv1.WriteHeader{Path: path, Size: int64(len(content)), Sha256: hashOf(content), MakeFolder: true}
	wrote, err := t.write(ctx, header, content)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := expect("the SHA-256 that the node read back", wrote.GetSha256(), hashOf(content)); err != nil {
		return err
	}
	info, err := t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if err := expect("the size of the written file", info.GetSize(), int64(len(content))); err != nil {
		return err
	}
	hash, err := t.node.Files.Hash(ctx, &agentv1.HashRequest{Path: path})
	if err != nil {
		return fmt.Errorf("hash %s: %w", path, err)
	}
	if err := expect("the SHA-256 of the written file", hash.GetSha256(), hashOf(content)); err != nil {
		return err
	}
	back, err := t.read(ctx, path, len(content))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if !bytes.Equal(back, content) {
		return errors.New("the file that came back has other bytes than the file that was sent")
	}
	return nil
}

// tryFiles writes, reads, renames, lists and removes a file.
func tryFiles(ctx context.Context, t *trial) error {
	path, other := folder+`\file.bin`, folder+`\Renamed.bin`
	if err := t.roundTrip(ctx, path, sample(300<<10)); err != nil {
		return err
	}
	if err := t.roundTrip(ctx, other, []byte("another file")); err != nil {
		return err
	}
	_, err := t.node.Files.Rename(ctx, &agentv1.RenameRequest{From: path, To: other})
	if err := expectError("a rename to a name that exists", err, fault.ErrExist); err != nil {
		return err
	}
	if _, err := t.node.Files.Rename(ctx, &agentv1.RenameRequest{From: path, To: other, Replace: true}); err != nil {
		return err
	}
	hash, err := t.node.Files.Hash(ctx, &agentv1.HashRequest{Path: strings.ToUpper(other)})
	if err != nil {
		return fmt.Errorf("find the file by its name in upper case: %w", err)
	}
	if err := expect("the SHA-256 after the rename", hash.GetSha256(), hashOf(sample(300<<10))); err != nil {
		return err
	}
	list, err := t.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if err != nil {
		return err
	}
	for _, entry := range list.GetEntries() {
		if strings.HasSuffix(entry.GetPath(), `\Renamed.bin`) {
			t.answer("name keeps its case", true)
		}
	}
	if _, err := t.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: other}); err != nil {
		return err
	}
	_, err = t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: other})
	return expectError("a look at the removed file", err, fault.ErrNotExist)
}

// tryNames uses names that programs with old interfaces cannot use.
func tryNames(ctx context.Context, t *trial) error {
	long := folder
	for range 3 {
		long += `\` + strings.Repeat("long", 30)
	}
	for _, path := range []string{
		folder + `\ünïcödé Ωμέγα 日本語 🚢.txt`,
		folder + `\with spaces & (brackets) 100%.txt`,
		long + `\file.txt`,
	} {
		if err := t.roundTrip(ctx, path, []byte(path)); err != nil {
			return err
		}
	}
	t.answer("longest path", len(long+`\file.txt`))
	_, err := t.write(ctx, &agentv1.WriteHeader{Path: folder + `\question?.txt`, Size: 1}, []byte("x"))
	t.answer("refuses a name with ?", err != nil)
	return nil
}

// tryResume writes half of a file, and continues it.
func tryResume(ctx context.Context, t *trial) error {
	path, whole := folder+`\resumed.bin`, sample(200<<10)
	half := whole[:len(whole)/2]
	_, err := t.write(ctx, &agentv1.WriteHeader{Path: path, Size: int64(len(half)), MakeFolder: true}, half)
	if err != nil {
		return err
	}
	header := &agentv1.WriteHeader{Path: path, Size: int64(len(whole)), Sha256: hashOf(whole),
		Offset: int64(len(half)) - 1}
	if _, err = t.write(ctx, header, whole[header.GetOffset():]); err == nil {
		return errors.New("the node continues a file at a place that is not the file's end")
	}
	header.Offset = int64(len(half))
	reply, err := t.write(ctx, header, whole[len(half):])
	if err != nil {
		return fmt.Errorf("continue a file: %w", err)
	}
	if err := expect("the SHA-256 of the continued file", reply.GetSha256(), hashOf(whole)); err != nil {
		return err
	}
	header = &agentv1.WriteHeader{Path: path, Size: 3, Sha256: hashOf([]byte("abc"))}
	if _, err := t.write(ctx, header, []byte("abd")); err == nil {
		return errors.New("the node accepts a file that has another SHA-256 than declared")
	}
	_, err = t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	return expectError("a look at the file with the wrong SHA-256", err, fault.ErrNotExist)
}

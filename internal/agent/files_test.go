package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const target = `C:\k\upload.bin`

// put writes a file as another program of the machine would.
func put(t testing.TB, m *simulated.Machine, path string, content []byte) {
	t.Helper()
	files := m.Process("setup").Files
	if err := files.MakeFolder(path[:strings.LastIndex(path, `\`)+1]); err != nil {
		t.Fatal(err)
	}
	f, err := files.Create(path, platform.CreateTruncate)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// get reads a file as another program of the machine would; found is false if
// there is none.
func get(t testing.TB, m *simulated.Machine, path string) (content []byte, found bool) {
	t.Helper()
	f, err := m.Process("look").Files.Open(path)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if content, err = io.ReadAll(f); err != nil {
		t.Fatal(err)
	}
	return content, true
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	r.Read(b)
	return b
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func compressed(t testing.TB, b []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	return encoder.EncodeAll(b, nil)
}

type upload = grpc.ClientStreamingClient[agentv1.WriteRequest, agentv1.WriteReply]

func sendHeader(t testing.TB, w upload, h *agentv1.WriteHeader) {
	t.Helper()
	if err := w.Send(&agentv1.WriteRequest{Header: h}); err != nil {
		t.Fatal(err)
	}
}

// write sends a whole file in messages of chunk bytes.
func (c *client) write(ctx context.Context, h *agentv1.WriteHeader, body []byte,
	chunk int) (*agentv1.WriteReply, error) {
	w, err := c.files.Write(ctx)
	if err != nil {
		return nil, err
	}
	request := &agentv1.WriteRequest{Header: h}
	for {
		n := min(chunk, len(body))
		request.Data, body = body[:n], body[n:]
		if err := w.Send(request); err != nil || len(body) == 0 {
			return w.CloseAndRecv() // which returns the reason of a failed Send
		}
		request = &agentv1.WriteRequest{}
	}
}

// read returns the contents of a file.
func (c *client) read(ctx context.Context, path string, offset int64) ([]byte, error) {
	r, err := c.files.Read(ctx, &agentv1.ReadRequest{Path: path, Offset: offset})
	if err != nil {
		return nil, err
	}
	var all []byte
	for {
		reply, err := r.Recv()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, reply.GetData()...)
	}
}

// await waits until a condition is true.
func await(t testing.TB, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("waited for nothing")
		}
	}
}

func TestHashIsCachedUntilTheFileChanges(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	put(t, m, target, []byte("one"))
	old := time.Now().Add(-time.Hour)
	files := m.Process("setup").Files
	if err := files.SetModified(target, old); err != nil {
		t.Fatal(err)
	}
	counting := &countingFiles{Files: m.Process("agent").Files}
	h := *m.Process("agent")
	h.Files = counting
	c := connect(t, &h)
	hash := func(want string) {
		t.Helper()
		reply, err := c.files.Hash(t.Context(), &agentv1.HashRequest{Path: target})
		switch {
		case err != nil:
			t.Fatal(err)
		case reply.GetSha256() != sha([]byte(want)):
			t.Fatalf("reply.GetSha256() is %v, want %v", reply.GetSha256(), sha([]byte(want)))
		case reply.GetSize() != int64(len(want)):
			t.Fatalf("reply.GetSize() is %v, want %v", reply.GetSize(), int64(len(want)))
		}
	}
	hash("one")
	hash("one")
	if counting.opened != 1 {
		t.Fatalf("the file was read %d times", counting.opened)
	}
	header := &agentv1.WriteHeader{Path: target, Size: 3, Modified: timestamppb.New(old)}
	if _, err := c.write(t.Context(), header, []byte("two"), 3); err != nil { // same size, same time
		t.Fatal(err)
	}
	hash("two")
	put(t, m, target, []byte("three"))
	hash("three")
}

type countingFiles struct {
	platform.Files
	opened int // reads of target
}

func (c *countingFiles) Open(path string) (io.ReadSeekCloser, error) {
	if path == target {
		c.opened++
	}
	return c.Files.Open(path)
}

func TestRenameAndFolders(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	c := connect(t, m.Process("agent"))
	ctx := t.Context()
	if _, err := c.files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: `C:\a\b`}); err != nil {
		t.Fatal(err)
	}
	put(t, m, `C:\a\one`, []byte("1"))
	put(t, m, `C:\a\two`, []byte("2"))
	_, err := c.files.Rename(ctx, &agentv1.RenameRequest{From: `C:\a\one`, To: `C:\a\two`})
	if !is(err, fault.ErrExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrExist)
	}
	if _, err := c.files.Rename(ctx, &agentv1.RenameRequest{From: `C:\a\one`, To: `C:\a\two`,
		Replace: true}); err != nil {
		t.Error(err)
	}
	list, err := c.files.List(ctx, &agentv1.ListFilesRequest{Path: `C:\a`})
	switch {
	case err != nil:
		t.Error(err)
	case len(list.GetEntries()) != 2:
		t.Errorf("list.GetEntries() has %d elements, want 2: %v", len(list.GetEntries()), list.GetEntries())
	case !list.GetEntries()[0].GetFolder():
		t.Error("list.GetEntries()[0].GetFolder() is false, want true")
	case list.GetEntries()[1].GetPath() != `C:\a\two`:
		t.Errorf("list.GetEntries()[1].GetPath() is %q, want %q", list.GetEntries()[1].GetPath(), `C:\a\two`)
	}
	if _, err := c.files.SetACL(ctx, &agentv1.SetACLRequest{Path: `C:\a\two`, Sddl: "D:P(A;;FA;;;SY)"}); err != nil {
		t.Error(err)
	}
	acl, err := c.files.GetACL(ctx, &agentv1.GetACLRequest{Path: `C:\a\two`})
	switch {
	case err != nil:
		t.Error(err)
	case !strings.Contains(acl.GetSddl(), "(A;;FA;;;SY)"):
		t.Errorf("acl.GetSddl() lacks %q:\n%s", "(A;;FA;;;SY)", acl.GetSddl())
	case strings.Contains(acl.GetSddl(), ";;;BU)"):
		t.Errorf("acl.GetSddl() contains %q:\n%s", ";;;BU)", acl.GetSddl())
	}
}

func TestRemove(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	c := connect(t, m.Process("agent"))
	put(t, m, `C:\a\b\c\deep`, nil)
	put(t, m, `C:\a\shallow`, nil)
	if _, err := c.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: `C:\a`}); err == nil {
		t.Error("a full folder was removed without recursive")
	}
	if _, err := c.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: `C:\a`, Recursive: true}); err != nil {
		t.Error(err)
	}
	if _, err := c.files.Stat(t.Context(), &agentv1.StatRequest{Path: `C:\a`}); !is(err, fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
	for _, volume := range []string{`C:`, `c:\`, `C:/`, `C:\.`, `C:\a\..\`, `C:\..`} {
		if _, err := c.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: volume, Recursive: true}); status.Code(
			err) != codes.InvalidArgument {
			t.Errorf("%s: status.Code(err) is %v, want %v", volume, status.Code(
				err), codes.InvalidArgument)
		}
	}
}

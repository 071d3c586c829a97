package transfer_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node/reply"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// on tampers with the replies of one kind.
func on[M proto.Message](change func(number int, reply M, send func(proto.Message) error) error) nodetest.Tamper {
	return func(_ string, number int, reply proto.Message, send func(proto.Message) error) error {
		if m, ok := reply.(M); ok {
			return change(number, m, send)
		}
		return send(reply)
	}
}

// changed is like on, for a change that sends each reply exactly once.
func changed[M proto.Message](change func(M)) nodetest.Tamper {
	return on(func(_ int, reply M, send func(proto.Message) error) error {
		change(reply)
		return send(reply)
	})
}

// entry replaces the entries of the copied folder with files of these names.
func entry(names ...string) nodetest.Tamper {
	return changed(func(m *agentv1.ListFilesReply) {
		m.Entries = nil
		for _, name := range names {
			m.Entries = append(m.Entries, &agentv1.FileInfo{Path: name, Size: 5})
		}
	})
}

// hostileCopies returns the attacks of a node while a folder is copied from it. Each copy must
// fail, and write nothing outside of its target.
func hostileCopies() map[string]nodetest.Tamper {
	hash := func(sum string) nodetest.Tamper {
		return changed(func(m *agentv1.HashReply) { m.Sha256 = sum })
	}
	return map[string]nodetest.Tamper{
		"no hash":                  hash(""),
		"a short hash":             hash("abc"),
		"a hash that climbs":       hash("../../../" + strings.Repeat("e", 55)),
		"a hash with backslashes":  hash(`..\..\..\` + strings.Repeat("e", 55)),
		"an absolute hash":         hash("/tmp/" + strings.Repeat("e", 59)),
		"another hash":             hash(strings.Repeat("e", 64)),
		"a negative size":          changed(func(m *agentv1.HashReply) { m.Size = -1 }),
		"a size of no disk":        changed(func(m *agentv1.HashReply) { m.Size = 1 << 55 }),
		"a size of no number":      changed(func(m *agentv1.HashReply) { m.Size = 1<<63 - 1 }),
		"less than it has":         changed(func(m *agentv1.HashReply) { m.Size = 3 }),
		"more than it has":         changed(func(m *agentv1.HashReply) { m.Size = 4 << 10 }),
		"a name above":             entry(`C:\in\tree\..\..\x`),
		"a name that climbs":       entry(`..\..\x`),
		"a POSIX name that climbs": entry(`C:\in\tree\../../x`),
		"an absolute name":         entry(`/etc/x`),
		"another drive's name":     entry(`D:\x`),
		"a name of a share":        entry(`\\server\share\x`),
		"a device":                 entry(`\\.\PhysicalDrive0`),
		"a stream":                 entry(`C:\in\tree\f.txt:stream`),
		"a name of a line":         entry("C:\\in\\tree\\a\nb"),
		"a name of a sequence":     entry("C:\\in\\tree\\\x1b]0;owned\a"),
		"a name with NUL":          entry("C:\\in\\tree\\a\x00b"),
		"no name":                  entry(`C:\in\tree\`),
		"dots":                     entry(`C:\in\tree\..`),
		"a name that ends in .":    entry(`C:\in\tree\f.txt.`),
		"the same name twice":      entry(`C:\in\tree\f.txt`, `C:\in\tree\f.txt`),
		"a folder in itself": changed(func(m *agentv1.ListFilesReply) {
			folder := `C:\in\tree`
			if len(m.GetEntries()) > 0 {
				folder = m.GetEntries()[0].GetPath()
				folder = folder[:strings.LastIndexByte(folder, '\\')]
			}
			m.Entries = []*agentv1.FileInfo{{Path: folder + `\` + strings.Repeat("a", 300), Folder: true}}
		}),
		"a time of no calendar": changed(func(m *agentv1.ListFilesReply) {
			for _, e := range m.GetEntries() {
				e.Modified = &timestamppb.Timestamp{Seconds: 1 << 60, Nanos: -1}
			}
		}),
		"nothing": on(func(_ int, m *agentv1.ReadReply, send func(proto.Message) error) error { return nil }),
		"nothing, for ever": on(func(_ int, m *agentv1.ReadReply, send func(proto.Message) error) error {
			for {
				if err := send(&agentv1.ReadReply{}); err != nil {
					return err
				}
			}
		}),
		"other bytes": changed(func(m *agentv1.ReadReply) {
			for i := range m.GetData() {
				m.Data[i] ^= 1
			}
		}),
		"a block that unpacks to too much": changed(func(m *agentv1.ReadReply) {
			m.Data, m.Packed = nil, []byte("\xff\xff\xff\xff\x0f\x00")
		}),
		"a block that is none": changed(func(m *agentv1.ReadReply) { m.Data, m.Packed = nil, []byte("\x05\xff\xff") }),
		"a block of nothing": on(func(_ int, m *agentv1.ReadReply, send func(proto.Message) error) error {
			for {
				if err := send(&agentv1.ReadReply{Packed: []byte{0}}); err != nil {
					return err
				}
			}
		}),
	}
}

func TestNoReplyOfANodeMakesACopyWriteElsewhere(t *testing.T) {
	n := start(t)
	n.Put(`C:\in\tree\f.txt`, []byte("hello"))
	for name, tamper := range hostileCopies() {
		t.Run(name, func(t *testing.T) {
			n.Tamper(tamper)
			above := t.TempDir()
			to := filepath.Join(above, "a", "b", "target")
			if err := os.MkdirAll(to, 0o700); err != nil {
				t.Fatal(err)
			}
			result, err := transfer.Download(t.Context(), n.Node, `C:\in\tree`, to, ui.Discard{})
			if err == nil {
				t.Errorf("copied: %+v", result)
			}
			whatIsThere(t, above, filepath.Join(to, "tree"))
		})
	}
}

// whatIsThere checks that no file outside of the target was written, and none of more than 8 KiB.
func whatIsThere(t *testing.T, above, target string) {
	t.Helper()
	err := filepath.WalkDir(above, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !strings.HasPrefix(path, target+string(filepath.Separator)) {
			t.Errorf("%s is outside of %s", path, target)
		}
		content, err := os.ReadFile(path)
		if err == nil && len(content) > 8<<10 {
			t.Errorf("%s has %d bytes", path, len(content))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If a node sends without end, swdt accepts only the announced number of bytes.
func TestMoreBytesThanAnnouncedAreNotTaken(t *testing.T) {
	n, want := start(t), []byte("hello")
	n.Put(`C:\k\f.txt`, want)
	n.Tamper(on(func(_ int, m *agentv1.ReadReply, send func(proto.Message) error) error {
		for {
			if err := send(m); err != nil {
				return err
			}
			m = &agentv1.ReadReply{Data: bytes.Repeat([]byte("x"), 1<<20)}
		}
	}))
	to := filepath.Join(t.TempDir(), "f.txt")
	if _, err := transfer.Download(t.Context(), n.Node, `C:\k\f.txt`, to, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func TestDownloadThatDoesNotFitIsNotBegun(t *testing.T) {
	n := start(t)
	n.Put(`C:\k\f.txt`, []byte("hello"))
	n.Tamper(changed(func(m *agentv1.HashReply) { m.Size = 1 << 55 }))
	_, err := transfer.Download(t.Context(), n.Node, `C:\k\f.txt`, t.TempDir(), ui.Discard{})
	var room *localfile.NoRoomError
	if !errors.As(err, &room) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, room)
	}
}

func TestARefusedReplySaysWhichAndWhatToDo(t *testing.T) {
	n := start(t)
	n.Put(`C:\k\f.txt`, []byte("hello"))
	n.Tamper(changed(func(m *agentv1.HashReply) { m.Sha256 = "../\x1b[2J" }))
	_, err := transfer.Download(t.Context(), n.Node, `C:\k\f.txt`, t.TempDir(), ui.Discard{})
	var refused *reply.Error
	switch {
	case !errors.As(err, &refused):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, refused)
	case refused.Method != "Files/Hash":
		t.Fatalf("refused.Method is %q, want %q", refused.Method, "Files/Hash")
	case refused.Field != "HashReply.sha256":
		t.Fatalf("refused.Field is %q, want %q", refused.Field, "HashReply.sha256")
	case strings.Contains(err.Error(), "\x1b"):
		t.Fatalf("err.Error() contains %q:\n%s", "\x1b", err.Error())
	}
}

// An upload succeeds only if the node reports that the written file has the hash of the local one.
func TestAnUploadThatArrivesAsAnotherFileFails(t *testing.T) {
	n := start(t)
	file := local(t, content(100<<10, 1))
	for name, tamper := range map[string]nodetest.Tamper{
		"another hash":    changed(func(m *agentv1.WriteReply) { m.Sha256 = strings.Repeat("e", 64) }),
		"no hash":         changed(func(m *agentv1.WriteReply) { m.Sha256 = "" }),
		"a negative size": changed(func(m *agentv1.WriteReply) { m.Size = -5 }),
		"part sizes":      changed(func(m *agentv1.FileInfo) { m.Size = -5 }),
	} {
		n.Tamper(tamper)
		_, err := transfer.Upload(t.Context(), n.Node, file.Path, `C:\k\`+strings.ReplaceAll(name, " ", "")+
			".exe", ui.Discard{})
		if err == nil && name != "part sizes" {
			t.Errorf("%s: believed", name)
		}
	}
}

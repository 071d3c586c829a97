package agent_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestWriteThenRead(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	c := connect(t, m.Process("agent"))
	for _, size := range []int{0, 1, 512 << 10, 512<<10 + 1, 1<<20 + 7} {
		for _, packed := range []bool{false, true} {
			for _, verified := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d bytes, zstd %v, verified %v", size, packed, verified), func(t *testing.T) {
					content := random(size)
					header := &agentv1.WriteHeader{Path: target, Size: int64(size), MakeFolder: true, Zstd: packed}
					body := content
					if packed {
						body = compressed(t, content)
					}
					if verified {
						header.Sha256 = strings.ToUpper(sha(content))
					}
					reply, err := c.write(t.Context(), header, body, 256<<10)
					switch {
					case err != nil:
						t.Fatal(err)
					case reply.GetSha256() != sha(content):
						t.Fatalf("reply.GetSha256() is %v, want %v", reply.GetSha256(), sha(content))
					case reply.GetSize() != int64(size):
						t.Fatalf("reply.GetSize() is %v, want %v", reply.GetSize(), int64(size))
					}
					for _, offset := range []int{0, size / 3, size} {
						if got, err := c.read(t.Context(), target, int64(offset)); err != nil ||
							!bytes.Equal(got, content[offset:]) {
							t.Fatalf("read %d bytes from %d, %v", len(got), offset, err)
						}
					}
				})
			}
		}
	}
}

func TestReadOutsideOfTheFile(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	put(t, m, target, random(10))
	c := connect(t, m.Process("agent"))
	if _, err := c.read(t.Context(), target, 11); status.Code(err) != codes.OutOfRange {
		t.Errorf("status.Code(err) is %v, want %v", status.Code(err), codes.OutOfRange)
	}
	if _, err := c.read(t.Context(), target, -1); status.Code(err) != codes.InvalidArgument {
		t.Errorf("status.Code(err) is %v, want %v", status.Code(err), codes.InvalidArgument)
	}
}

func TestWriteKeepsTheTimeOfChange(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	c := connect(t, m.Process("agent"))
	when := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	header := &agentv1.WriteHeader{Path: target, Size: 3, MakeFolder: true, Modified: timestamppb.New(when)}
	if _, err := c.write(t.Context(), header, []byte("abc"), 3); err != nil {
		t.Fatal(err)
	}
	info, err := c.files.Stat(t.Context(), &agentv1.StatRequest{Path: target})
	switch {
	case err != nil:
		t.Fatal(err)
	case !info.GetModified().AsTime().Equal(when):
		t.Fatal("info.GetModified().AsTime().Equal(when) is false, want true")
	}
}

// Data that cannot become the announced file is refused, and nothing of it
// stays.
func TestWriteLeavesNothingOfAWrongFile(t *testing.T) {
	content := random(1 << 20)
	packed := compressed(t, content)
	damaged := bytes.Clone(packed)
	damaged[len(damaged)/2] ^= 0xff
	other := sha([]byte("other"))
	for _, test := range []struct {
		name   string
		header *agentv1.WriteHeader
		body   []byte
		code   codes.Code
	}{
		{"too much", &agentv1.WriteHeader{Size: 1<<20 - 1}, content, codes.InvalidArgument},
		{"too little", &agentv1.WriteHeader{Size: 1<<20 + 1}, content, codes.InvalidArgument},
		{"another hash", &agentv1.WriteHeader{Size: 1 << 20, Sha256: other}, content, codes.DataLoss},
		{"too much, compressed", &agentv1.WriteHeader{Size: 1<<20 - 1, Zstd: true}, packed, codes.InvalidArgument},
		{"too little, compressed", &agentv1.WriteHeader{Size: 1<<20 + 1, Zstd: true}, packed, codes.InvalidArgument},
		{"cut compression", &agentv1.WriteHeader{Size: 1 << 20, Zstd: true}, packed[:len(packed)-5],
			codes.InvalidArgument},
		{"damaged compression", &agentv1.WriteHeader{Size: 1 << 20, Zstd: true, Sha256: sha(content)}, damaged,
			codes.InvalidArgument},
		{"no compression", &agentv1.WriteHeader{Size: 1 << 20, Zstd: true}, content, codes.InvalidArgument},
		{"something behind the compression", &agentv1.WriteHeader{Size: 1 << 20, Zstd: true},
			append(bytes.Clone(packed), "rest"...), codes.InvalidArgument},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
			c := connect(t, m.Process("agent"))
			test.header.Path, test.header.MakeFolder = target, true
			_, err := c.write(t.Context(), test.header, test.body, 100<<10)
			if status.Code(err) != test.code {
				t.Errorf("status.Code(err) is %v, want %v", status.Code(err), test.code)
			}
			if _, found := get(t, m, target); found {
				t.Error("something stayed")
			}
		})
	}
}

// Invalid headers are refused before any file is changed.
func TestWriteRefusesBadHeaders(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	put(t, m, target, []byte("0123456789"))
	c := connect(t, m.Process("agent"))
	hash := sha([]byte("x"))
	for _, header := range []*agentv1.WriteHeader{
		nil,
		{},
		{Path: target, Size: -1},
		{Path: target, Size: 20, Offset: 21, Sha256: hash},
		{Path: target, Size: 20, Offset: -1, Sha256: hash},
		{Path: target, Size: 20, Sha256: "abc"},
		{Path: target, Size: 20, Sha256: strings.Repeat("x", 64)},
		{Path: target, Size: 20, Offset: 10},
		{Path: target, Size: 20, Offset: 10, Sha256: hash, NewOnly: true},
		{Path: target, Size: 20, Modified: &timestamppb.Timestamp{Nanos: -5}},
	} {
		if _, err := c.write(t.Context(), header, nil, 1); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: got %v", header, err)
		}
	}
	if _, err := c.write(t.Context(), &agentv1.WriteHeader{Path: target, Size: 20, Offset: 9, Sha256: hash}, nil,
		1); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("continue elsewhere: got %v", err)
	}
	if _, err := c.write(t.Context(), &agentv1.WriteHeader{Path: target, NewOnly: true}, nil,
		1); !is(err, fault.ErrExist) {
		t.Errorf("new_only: got %v", err)
	}
	if _, err := c.write(t.Context(), &agentv1.WriteHeader{Path: `C:\Windows`}, nil, 1); !is(err,
		fault.ErrIsDirectory) {
		t.Errorf("a folder: got %v", err)
	}
	if content, _ := get(t, m, target); string(content) != "0123456789" {
		t.Errorf("the file is now %q", content)
	}
}

func TestAFullDiskLeavesNothing(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	c := connect(t, m.Process("agent"))
	m.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpWrite && op.Phase == simulated.Before && op.Occurrence == 2 {
			return simulated.DiskFull()
		}
		return simulated.Continue()
	})
	content := random(3 << 20)
	for _, packed := range []bool{false, true} {
		header := &agentv1.WriteHeader{Path: fmt.Sprint(target, packed), Size: 3 << 20, MakeFolder: true, Zstd: packed}
		body := content
		if packed {
			body = compressed(t, content)
		}
		if _, err := c.write(t.Context(), header, body, 1<<20); !is(err, fault.ErrDiskFull) {
			t.Errorf("zstd %v: got %v", packed, err)
		}
		if _, found := get(t, m, header.GetPath()); found {
			t.Errorf("zstd %v: something stayed", packed)
		}
	}
}

// A cut upload stays, and the file is complete after any number of cuts.
func TestACutUploadIsContinued(t *testing.T) {
	content := random(400 << 10)
	for _, cuts := range [][]int64{{}, {0}, {0, 0, 100 << 10}, {123, 333_333},
		{200 << 10, 200 << 10, 399 << 10}, {400 << 10}} {
		for _, packed := range []bool{false, true} {
			t.Run(fmt.Sprintf("cut at %v, zstd %v", cuts, packed), func(t *testing.T) {
				m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
				var have int64
				for _, cut := range cuts {
					have = cutUpload(t, m, content, have, cut)
				}
				header := &agentv1.WriteHeader{Path: target, Size: int64(len(content)), Offset: have,
					Sha256: sha(content), MakeFolder: true}
				body := content[have:]
				if packed {
					header.Zstd, body = true, compressed(t, body)
				}
				if _, err := connect(t, m.Process("agent")).write(t.Context(), header, body, 256<<10); err != nil {
					t.Fatal(err)
				}
				if got, _ := get(t, m, target); !bytes.Equal(got, content) {
					t.Fatalf("%d bytes are there", len(got))
				}
			})
		}
	}
}

// cutUpload sends content from offset on, cuts the stream when the file has
// `enough` bytes, and returns the size of the file.
func cutUpload(t *testing.T, m *simulated.Machine, content []byte, offset, enough int64) int64 {
	t.Helper()
	c := connect(t, m.Process("agent"))
	w, err := c.files.Write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sendHeader(t, w, &agentv1.WriteHeader{Path: target, Size: int64(len(content)), Offset: offset, Sha256: sha(content),
		MakeFolder: true})
	for at := offset; at < enough; {
		n := min(50<<10, enough-at)
		if err := w.Send(&agentv1.WriteRequest{Data: content[at : at+n]}); err != nil {
			t.Fatal(err)
		}
		at += n
	}
	await(t, func() bool {
		got, _ := get(t, m, target)
		return int64(len(got)) >= enough
	})
	c.stream.Close()
	c.close(t)
	got, _ := get(t, m, target)
	if !bytes.Equal(got, content[:len(got)]) {
		t.Fatalf("%d bytes are there, and not the right ones", len(got))
	}
	return int64(len(got))
}

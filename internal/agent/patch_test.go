package agent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/delta"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

const base = `C:\k\kubelet.exe`

// difference returns a patch that makes new of old.
func difference(t testing.TB, old, new []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := delta.Diff(t.Context(), old, new, &out, delta.Options{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// patch sends a patch in messages of chunk bytes.
func (c *client) patch(ctx context.Context, h *agentv1.PatchHeader, body []byte,
	chunk int) (*agentv1.PatchReply, error) {
	s, err := c.files.Patch(ctx)
	if err != nil {
		return nil, err
	}
	request := &agentv1.PatchRequest{Header: h}
	for {
		n := min(chunk, len(body))
		request.Data, body = body[:n], body[n:]
		if err := s.Send(request); err != nil || len(body) == 0 {
			return s.CloseAndRecv() // which returns the reason of a failed Send
		}
		request = &agentv1.PatchRequest{}
	}
}

// builds returns two builds of a program.
func builds() (old, new []byte) {
	old = random(3 << 20)
	new = append(bytes.Clone(old[:1<<20]), "one more line"...)
	return old, append(new, old[1<<20:]...)
}

func header(old, new []byte) *agentv1.PatchHeader {
	return &agentv1.PatchHeader{
		Base: base, BaseSha256: sha(old), Path: target + ".part", RenameTo: target,
		Size: int64(len(new)), Sha256: sha(new),
	}
}

func TestPatchMakesTheNewFileOfTheOld(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	old, new := builds()
	put(t, m, base, old)
	put(t, m, target, []byte("whatever was there before"))
	c := connect(t, m.Process("agent"))
	for _, chunk := range []int{1000, 1 << 20} {
		reply, err := c.patch(t.Context(), header(old, new), difference(t, old, new), chunk)
		switch {
		case err != nil:
			t.Fatal(err)
		case reply.GetSha256() != sha(new):
			t.Fatalf("reply.GetSha256() is %v, want %v", reply.GetSha256(), sha(new))
		case reply.GetSize() != int64(len(new)):
			t.Fatalf("reply.GetSize() is %v, want %v", reply.GetSize(), int64(len(new)))
		case reply.GetApplying().AsDuration() <= 0:
			t.Fatalf("reply.GetApplying().AsDuration() is %v, want more than 0", reply.GetApplying().AsDuration())
		}
		if got, _ := get(t, m, target); !bytes.Equal(got, new) {
			t.Fatal("another file was made")
		}
		if _, found := get(t, m, target+".part"); found {
			t.Error("the part is still there")
		}
	}
	if got, _ := get(t, m, base); !bytes.Equal(got, old) {
		t.Error("the base was changed")
	}
}

func TestPatchRefusesAndLeavesNothing(t *testing.T) {
	old, new := builds()
	other := random(2 << 20)
	good := difference(t, old, new)
	for name, c := range map[string]struct {
		on    []byte // the base on the node
		head  func(h *agentv1.PatchHeader)
		body  []byte
		codes []codes.Code
	}{
		"another base":        {on: other, codes: []codes.Code{codes.FailedPrecondition}},
		"no base":             {codes: []codes.Code{codes.NotFound}},
		"a patch for another": {on: old, body: difference(t, other, new), codes: []codes.Code{codes.DataLoss}},
		"a patch of another": {on: old, body: difference(t, old, other),
			codes: []codes.Code{codes.DataLoss, codes.InvalidArgument}},
		"half of it": {on: old, body: good[:len(good)/2], codes: []codes.Code{codes.DataLoss}},
		"nothing":    {on: old, body: []byte{}, codes: []codes.Code{codes.DataLoss}},
		"noise":      {on: old, body: random(5000), codes: []codes.Code{codes.DataLoss}},
		"damaged": {on: old, body: damaged(good),
			codes: []codes.Code{codes.DataLoss, codes.InvalidArgument}},
		"more than the patch": {on: old, body: append(bytes.Clone(good), 0),
			codes: []codes.Code{codes.InvalidArgument, codes.DataLoss}},
		"another size": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Size++
		}, codes: []codes.Code{codes.InvalidArgument}},
		"less than it makes": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Size = 10
		}, codes: []codes.Code{codes.InvalidArgument}},
		"another hash": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Sha256 = sha(other)
		}, codes: []codes.Code{codes.DataLoss}},
		"no hash": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Sha256 = ""
		}, codes: []codes.Code{codes.InvalidArgument}},
		"no hash of the base": {on: old, head: func(h *agentv1.PatchHeader) {
			h.BaseSha256 = "12"
		}, codes: []codes.Code{codes.InvalidArgument}},
		"onto the base": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Path = strings.ToUpper(h.Base)
		}, codes: []codes.Code{codes.InvalidArgument}},
		"no path": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Path = ""
		}, codes: []codes.Code{codes.InvalidArgument}},
		"a negative size": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Size = -1
		}, codes: []codes.Code{codes.InvalidArgument}},
		"a folder as its name": {on: old, head: func(h *agentv1.PatchHeader) { h.RenameTo = `C:\k` }, codes: nil},
		"no header, only a patch": {on: old, head: func(h *agentv1.PatchHeader) {
			h.Reset()
		}, codes: []codes.Code{codes.InvalidArgument}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
			put(t, m, `C:\k\placeholder`, nil)
			if c.on != nil {
				put(t, m, base, c.on)
			}
			h, body := header(old, new), c.body
			if c.head != nil {
				c.head(h)
			}
			if body == nil {
				body = good
			}
			client := connect(t, m.Process("agent"))
			_, err := client.patch(t.Context(), h, body, 64<<10)
			if err == nil {
				t.Fatal("it was taken")
			}
			ok := c.codes == nil
			for _, code := range c.codes {
				ok = ok || status.Code(err) == code
			}
			if !ok {
				t.Errorf("%s: ok is false, want true", status.Code(err))
			}
			if _, found := get(t, m, target); found {
				t.Error("a file took the name")
			}
			if _, found := get(t, m, target+".part"); found {
				t.Error("the part was left")
			}
			if got, _ := get(t, m, base); !bytes.Equal(got, c.on) {
				t.Error("the base was changed")
			}
		})
	}
}

func damaged(patch []byte) []byte {
	out := bytes.Clone(patch)
	out[len(out)*3/4] ^= 0x10
	return out
}

func TestAPatchThatIsCutLeavesNothing(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	old, new := builds()
	put(t, m, base, old)
	c := connect(t, m.Process("agent"))
	patch := difference(t, old, new)
	s, err := c.files.Patch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&agentv1.PatchRequest{Header: header(old, new), Data: patch[:len(patch)/2]}); err != nil {
		t.Fatal(err)
	}
	c.stream.Close()
	if _, err := s.CloseAndRecv(); err == nil {
		t.Fatal("half a patch was taken")
	}
	c.close(t)
	for _, path := range []string{target, target + ".part"} {
		if _, found := get(t, m, path); found {
			t.Errorf("%s was left", path)
		}
	}
}

func TestPatchOnAFullDisk(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	old, new := builds()
	put(t, m, base, old)
	m.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if o.Kind == simulated.OpWrite && strings.HasSuffix(o.Target, ".part") {
			return simulated.DiskFull()
		}
		return simulated.Continue()
	})
	c := connect(t, m.Process("agent"))
	_, err := c.patch(t.Context(), header(old, new), difference(t, old, new), 64<<10)
	m.OnOperation(nil)
	if !errors.Is(rpcerror.FromStatus(err), fault.ErrDiskFull) {
		t.Fatalf("the error is %v, want %v", rpcerror.FromStatus(err), fault.ErrDiskFull)
	}
}

func TestPatchKeepsTheTimeAndMakesTheFolder(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	old, new := builds()
	put(t, m, base, old)
	c := connect(t, m.Process("agent"))
	h := header(old, new)
	h.Path, h.RenameTo, h.MakeFolder = `C:\new\folder\x.part`, `C:\new\folder\x.exe`, true
	h.Modified = timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if _, err := c.patch(t.Context(), h, difference(t, old, new), 64<<10); err != nil {
		t.Fatal(err)
	}
	info, err := m.Process("look").Files.Stat(h.RenameTo)
	switch {
	case err != nil:
		t.Error(err)
	case !info.Modified.Equal(h.Modified.AsTime()):
		t.Error("info.Modified.Equal(h.Modified.AsTime()) is false, want true")
	}
}

func TestProbeAnswersEachMessage(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	c := connect(t, m.Process("agent"))
	s, err := c.files.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	for _, size := range []int{0, 64 << 10, 1 << 20} {
		if err := s.Send(&agentv1.ProbeRequest{Data: noise[:size]}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("err is %v, want %v", err, io.EOF)
	}
}

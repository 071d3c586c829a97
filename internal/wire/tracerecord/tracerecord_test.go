package tracerecord_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

func example() tracerecord.Record {
	sum := func(text string) string { return tracerecord.Sum([]byte(text), true) }
	return tracerecord.Record{Services: map[string]tracerecord.Service{
		"containerd": {
			On: false, CommandLine: tracerecord.Change{Before: "plain", After: "louder"},
			Config: &tracerecord.File{Path: `C:\c\config.toml`, Kept: `C:\kept`,
				Change: tracerecord.Change{Before: sum("a"), After: sum("c")}},
			Earlier: &tracerecord.Service{
				On: true, CommandLine: tracerecord.Change{Before: "plain", After: "loud"},
				Config: &tracerecord.File{Path: `C:\c\config.toml`, Kept: `C:\kept`,
					Change: tracerecord.Change{Before: sum("a"), After: sum("b")}},
			},
		},
		"kubelet": {On: true, CommandLine: tracerecord.Change{Before: "same", After: "same"}},
	}}
}

// The state without the trace is known even while one trace replaces another.
func TestUntracedContentIsKnown(t *testing.T) {
	r := example()
	for _, c := range []struct {
		service, is, plain string
		traced             bool
	}{
		{"containerd", "louder", "plain", true}, {"Containerd", "loud", "plain", true},
		{"containerd", "plain", "plain", false}, {"containerd", "another", "another", false},
		{"kubelet", "same", "same", false}, {"other", "loud", "loud", false},
	} {
		switch plain, traced := r.CommandLine(c.service, c.is); {
		case plain != c.plain:
			t.Errorf("plain is %v, want %v", plain, c.plain)
		case traced != c.traced:
			t.Errorf("traced is %v, want %v", traced, c.traced)
		}
	}
	for content, want := range map[string]bool{"a": false, "b": true, "c": true, "d": false} {
		if kept, traced := r.Untraced(`c:/C/config.toml`, []byte(content)); traced != want || traced &&
			kept != `C:\kept` {
			t.Errorf("%s: %s, %v", content, kept, traced)
		}
	}
	if _, traced := r.Untraced(`C:\other`, []byte("c")); traced {
		t.Error("another file")
	}
}

func TestAFileThatIsNotThereIsNoEmptyFile(t *testing.T) {
	if tracerecord.Sum(nil, false) != "" || tracerecord.Sum(nil, true) == "" {
		t.Error("they are the same")
	}
}

func TestTheRecordIsReadBack(t *testing.T) {
	content, err := example().Encode()
	if err != nil {
		t.Fatal(err)
	}
	load := func(content []byte, err error) (tracerecord.Record, error) {
		return tracerecord.Load(t.Context(), func(context.Context, string) ([]byte, error) { return content, err })
	}
	got, err := load(content, nil)
	if diff := cmp.Diff(example(), got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	switch got, err := load(nil, fault.ErrNotExist); {
	case err != nil:
		t.Errorf("none: %v", err)
	case len(got.Services) != 0:
		t.Errorf("none: got.Services is %v, want it empty", got.Services)
	case got.Services == nil:
		t.Error("none: got.Services is nil")
	}
	if _, err := load([]byte("{"), nil); err == nil {
		t.Error("a damaged one is read")
	}
	if _, err := load(nil, fault.ErrPermission); !errors.Is(err, fault.ErrPermission) {
		t.Errorf("the error is %v, want %v", err, fault.ErrPermission)
	}
}

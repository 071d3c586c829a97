package record_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

func example() record.Record {
	sum := func(text string) string { return record.Sum([]byte(text), true) }
	return record.Record{Services: map[string]record.Service{
		"containerd": {
			On: false, CommandLine: record.Change{Before: "plain", After: "louder"},
			Config: &record.File{Path: `C:\c\config.toml`, Kept: `C:\kept`, Change: record.Change{Before: sum("a"), After: sum("c")}},
			Earlier: &record.Service{
				On: true, CommandLine: record.Change{Before: "plain", After: "loud"},
				Config: &record.File{Path: `C:\c\config.toml`, Kept: `C:\kept`, Change: record.Change{Before: sum("a"), After: sum("b")}},
			},
		},
		"kubelet": {On: true, CommandLine: record.Change{Before: "same", After: "same"}},
	}}
}

// What stands there without the trace is known while one trace takes another's
// place too.
func TestWhatIsThereWithoutTheTrace(t *testing.T) {
	r := example()
	for _, c := range []struct {
		service, is, plain string
		traced             bool
	}{
		{"containerd", "louder", "plain", true}, {"Containerd", "loud", "plain", true},
		{"containerd", "plain", "plain", false}, {"containerd", "another", "another", false},
		{"kubelet", "same", "same", false}, {"other", "loud", "loud", false},
	} {
		if plain, traced := r.CommandLine(c.service, c.is); plain != c.plain || traced != c.traced {
			t.Errorf("%s %s: %s, %v", c.service, c.is, plain, traced)
		}
	}
	for content, want := range map[string]bool{"a": false, "b": true, "c": true, "d": false} {
		if kept, traced := r.Kept(`c:/C/config.toml`, []byte(content)); traced != want || traced && kept != `C:\kept` {
			t.Errorf("%s: %s, %v", content, kept, traced)
		}
	}
	if _, traced := r.Kept(`C:\other`, []byte("c")); traced {
		t.Error("another file")
	}
}

func TestAFileThatIsNotThereIsNoEmptyFile(t *testing.T) {
	if record.Sum(nil, false) != "" || record.Sum(nil, true) == "" {
		t.Error("they are the same")
	}
}

func TestTheRecordIsReadBack(t *testing.T) {
	content, err := example().Encode()
	if err != nil {
		t.Fatal(err)
	}
	load := func(content []byte, err error) (record.Record, error) {
		return record.Load(t.Context(), func(context.Context, string) ([]byte, error) { return content, err })
	}
	got, err := load(content, nil)
	if diff := cmp.Diff(example(), got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := load(nil, host.ErrNotExist); err != nil || len(got.Services) != 0 || got.Services == nil {
		t.Errorf("none: %+v, %v", got, err)
	}
	if _, err := load([]byte("{"), nil); err == nil {
		t.Error("a damaged one is read")
	}
	if _, err := load(nil, host.ErrPermission); !errors.Is(err, host.ErrPermission) {
		t.Errorf("%v", err)
	}
}

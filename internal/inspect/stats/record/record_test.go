package record_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
)

func meta() record.Meta {
	return record.Meta{
		Version: record.Version, Started: time.Unix(1700000000, 0).UTC(), Interval: "1s", Callers: 1,
		Sources: []stats.Source{stats.CRI},
		Nodes: []record.NodeFacts{{Name: "win", Windows: "Windows Server 2022 Datacenter 20348.2849",
			Runtime: "containerd v1.7.12"}},
	}
}

func readings(n int) (all []stats.Reading) {
	for i := range n {
		at := time.Unix(1700000000+int64(i), 123)
		r := stats.Reading{Node: "win", Source: stats.CRI, Caller: i % 2, Received: at, Latency: 3 * time.Millisecond,
			Cores: 4}
		r.Samples = []stats.Sample{
			{Container: stats.Container{Node: "win", ID: "1", Pod: "a", Name: "c"}, Taken: at,
				Reported: stats.Value(0), Counter: stats.Value(1<<64 - 1), Limit: 0.5},
			{Container: stats.Container{Node: "win", ID: "2", Namespace: "n", Pod: "b"}, Taken: at,
				Counter: stats.Value(5), Memory: stats.Value(uint64(i))},
		}
		if i > 3 {
			r.Samples[1].Limit = 1.5 // the limit changes while the container runs
		}
		all = append(all, r)
	}
	return append(all, stats.Reading{Node: "win", Source: stats.Summary, Received: time.Unix(1700000100, 0),
		Err: "no answer"})
}

func write(t *testing.T, path string, all []stats.Reading) {
	t.Helper()
	w, err := record.Create(path, meta())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) (record.Recording, []stats.Reading) {
	t.Helper()
	var all []stats.Reading
	recording, err := record.Read(path, func(_ record.Meta, r stats.Reading) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return recording, all
}

func TestRecordedSamplesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	want := readings(30)
	write(t, path, want)
	recording, got := read(t, path)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]record.Meta{meta()}, recording.Metas); diff != "" || recording.Cut {
		t.Error(diff, recording.Cut)
	}
}

// Levels are recorded between readings, and a reader of readings alone does not see them.
func TestRecordedLevelsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	w, err := record.Create(path, meta())
	if err != nil {
		t.Fatal(err)
	}
	want := stats.Levels{Node: "win", Taken: time.Unix(1700000000, 5), Levels: []stats.Level{
		{Of: "kubelet", Measure: stats.Handles, Instance: "4711", Value: 500}, {Of: "node", Measure: stats.ShimsUnowned}}}
	if err := errors.Join(w.AddLevels(want), w.Add(readings(1)[0]), w.Close()); err != nil {
		t.Fatal(err)
	}
	var got []stats.Levels
	if _, err := record.ReadAll(path, record.Receiver{Levels: func(l stats.Levels) error {
		got = append(got, l)
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]stats.Levels{want}, got); diff != "" {
		t.Error(diff)
	}
	if _, all := read(t, path); len(all) != 1 {
		t.Errorf("%d readings", len(all))
	}
}

// However much of the file's end is missing, the complete frames before it are read, and
// the next recording is appended after them.
func TestCutAnywhere(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r")
	want := readings(12) // three frames
	write(t, path, want)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cutPath := filepath.Join(folder, "cut")
	most := 0
	for size := range data {
		if err := os.WriteFile(cutPath, data[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		var got []stats.Reading
		recording, err := record.Read(cutPath, func(_ record.Meta, r stats.Reading) error {
			got = append(got, r)
			return nil
		})
		if err != nil && len(recording.Metas) > 0 {
			t.Fatalf("cut at %d of %d: %v", size, len(data), err)
		}
		if len(got) < most || len(got) > 0 && cmp.Diff(want[:len(got)], got) != "" {
			t.Fatalf("cut at %d: %d readings after %d", size, len(got), most)
		}
		most = len(got)
		write(t, cutPath, want[:1])
		if recording, again := read(t, cutPath); len(again) != len(got)+1 || recording.Cut {
			t.Fatalf("cut at %d and appended to: %d readings, want %d", size, len(again), len(got)+1)
		}
	}
	if most == 0 || most == len(want) {
		t.Errorf("at the end %d of %d readings were there", most, len(want))
	}
}

// A watch without a reading leaves no new file, and keeps the content of an existing file.
func TestARecordingOfNothingIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	write(t, path, nil)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	write(t, path, readings(2))
	write(t, path, nil)
	if _, all := read(t, path); len(all) != 3 {
		t.Errorf("%d readings are left of 3", len(all))
	}
}

func TestAnotherFileIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	for _, text := range []string{"x", "short", "something that took long to write"} {
		refused(t, path, text)
	}
}

func refused(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if w, err := record.Create(path, meta()); err == nil {
		t.Error("it was recorded to", errors.Join(w.Close()))
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("the file is %q, %v", got, err)
	}
	if _, err := record.Read(path, func(record.Meta, stats.Reading) error { return nil }); err == nil {
		t.Error("it was read")
	}
}

// An answer takes only the bytes of its numbers, since names are recorded once.
func TestAnswerIsRecordedInFewBytes(t *testing.T) {
	const pods, answers = 200, 300
	var all []stats.Reading
	for i := range answers {
		at := time.Unix(1700000000+int64(i), 0)
		r := stats.Reading{Node: "win", Source: stats.CRI, Received: at, Latency: 3 * time.Millisecond, Cores: 4}
		for pod := range pods {
			cores := uint64(pod+1) * 1e6 // a rate of its own for each pod, as its counter
			r.Samples = append(r.Samples, stats.Sample{
				Container: stats.Container{Node: "win", ID: fmt.Sprintf("%064x", pod), Namespace: "default",
					Pod: fmt.Sprint("burner-", pod), Name: "burn"},
				Taken: at.Add(time.Duration(pod) * time.Microsecond), Reported: stats.Value(cores),
				Counter: stats.Value(cores * uint64(i)), Memory: stats.Value(21 << 20),
			})
		}
		all = append(all, r)
	}
	path := filepath.Join(t.TempDir(), "r")
	write(t, path, all)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f bytes a sample", float64(info.Size())/pods/answers)
	if info.Size() > 12*pods*answers {
		t.Errorf("%d bytes for %d samples", info.Size(), pods*answers)
	}
}

//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func someResults() Results {
	return Results{
		Sizes: Sizes{Repeat: 3, Pairs: []PairResult{{
			Pair: Pair{Name: "kubelet", What: "old → new & <more>", OldBytes: 1_234_567, NewBytes: 1_234_568},
			Patches: []Patch{
				{Tool: swdtFast, Bytes: 200, DiffSeconds: 0.25, DiffCPU: 0.4, DiffMemory: 3e6, ApplySeconds: 0.1,
					ApplyMemory: 1e6},
				{Tool: "bsdiff", Bytes: 100, DiffSeconds: 25, DiffMemory: 9e6, ApplySeconds: 0.2, ApplyMemory: 2e6},
				{Tool: "rsync -z", Bytes: 5000, DiffSeconds: 0.5, DiffMemory: 1e6},
				{Tool: "xdelta3", Error: "more than 90 s"},
			},
			OneCore: map[string]float64{swdtFast: 250e6},
		}}},
		Pushes: Pushes{Repeat: 3, Pair: Pair{What: "kubelet", NewBytes: 99}, Links: []LinkResult{{
			Link: links()[1],
			Ways: []Push{
				{Way: wayConnect, Seconds: 0.1}, {Way: wayScp, Seconds: 8},
				{Way: waySwdt, Seconds: 1, TransferSeconds: 0.5, Method: "delta", SentBytes: 200,
					SwappedSeconds: 0.9, AfterConnect: 0.8, Parts: []Part{{"connect", 0.1}, {"stage", 0.5}}},
				{Way: waySwdtFirst, Error: "it failed"},
			},
		}}},
		Downtime: Downtime{Sizes: []DowntimeOfSize{{Bytes: 1, Seconds: []float64{0.1, 0.3, 0.2}},
			{Bytes: 100, Seconds: []float64{0.4}}}},
		Logs: Logs{Ways: []LogRead{{Way: "swdt logs", Seconds: 1, Wire: 2, Memory: 3e6, Lines: 4}}},
		Stats: Stats{Watches: []Watch{{
			Node: "Wine", Output: "table", Seconds: 300, CPU: 4.5, Resident: 59e6, Own: 15e6, Samples: 60_000,
			Printed: 1234, Recorded: 5678,
			Far: []Far{{What: "the agent", CPU: 3, Most: 20e6}},
		}}},
		Relay: Relay{
			Calls: []RelayCall{{Method: "/a.B/Version", OnNode: []float64{0.001, 0.002, 0.001},
				Proxy: []float64{0.002, 0.003, 0.0025}}},
			InProcess: map[string][]float64{"Bulk/to_the_node MB/s": {250, 300, 200}},
		},
		VM: VM{
			Accelerator: "tcg", GoldenBytes: 10 << 30,
			Starts: []VMStart{
				{Swdt: 12, QEMU: 12, SwdtCPU: 9, QEMUCPU: 9}, {Swdt: 13, QEMU: 10, SwdtCPU: 9, QEMUCPU: 10},
				{Swdt: 12, QEMU: 10, SwdtCPU: 8, QEMUCPU: 8},
			},
			Create: []float64{0.1, 0.3, 0.2}, Image: []float64{0.02},
		},
	}
}

func TestPages(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "benchmarks.md")
	text := "# Mine\n"
	for _, part := range parts() {
		text += "<!-- bench:" + part + " -->\nold numbers\n<!-- /bench:" + part + " -->\nmy words\n"
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once more changes nothing
		if err := writePages(docs, someResults()); err != nil {
			t.Fatal(err)
		}
		got := read(t, page)
		for _, want := range []string{
			"1,234,567", "| swdt fast | 200 | 2.00 × | 0.250 | 0.0100 × | 0.400 | 3 | 0.100 | 1 |",
			"| rsync -z | 5,000 | 50 × |",
			"| xdelta3 | more than 90 s |", "| kubelet | 250 MB/s | – |",
			"| scp | 8.00 × / 16 × |", "| stage | 0.500 |", "| the same after `ssh true`, paired | 0.800 |", "| swdt push | 200 (delta) |", "| swdt push, first push | – |",
			"median is 2.00 × of",
			"| live table on a terminal, Wine node | 300.0 | 4.500 | 1.50 % | 59 | 15 | 60,000 | 1,234 | 5,678 |",
			"| Wine node, table: the agent | 3.000 | 1.00 % | 20 |", "| `Version` | 1.00 | 2.50 | 1.50 |",
			"| Bulk/to the node MB/s | 250 | 200 | 300 |",
			"Accelerator tcg; 3 pairs of starts, 3 of images.", "| `swdt vm start --wait` | 12.0 | 12.0 | 13.0 |",
			"an image of 10,737,418,240 bytes | 0.200 | 0.100 | 0.300 |",
			"swdt needed 1.20 × the time of QEMU (median; 1.00 × to 1.30 ×), and QEMU 1.00 × the processor", "# Mine\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if strings.Contains(got, "old numbers") || strings.Count(got, "my words") != len(parts()) {
			t.Errorf("what is around the tables is not as it was:\n%s", got)
		}
	}
	for _, image := range []string{"patches.svg", "pushes.svg", "push-parts.svg"} {
		if err := wellFormed(read(t, filepath.Join(docs, "img", image))); err != nil {
			t.Errorf("%s: %v", image, err)
		}
	}
}

func TestAPageWithoutMarkersIsNotTouched(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "benchmarks.md")
	if err := os.WriteFile(page, []byte("# Mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writePages(docs, someResults()); err == nil {
		t.Error("no error for missing markers, want one")
	}
	if got := read(t, page); got != "# Mine\n" {
		t.Errorf("the page is now %q", got)
	}
}

func TestRsyncBytes(t *testing.T) {
	got, err := rsyncBytes([]byte("Number of files: 1\nTotal bytes sent: 13,819,000\nTotal bytes received: 697\n"))
	if err != nil || got != 13_819_697 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := rsyncBytes([]byte("nothing")); err == nil {
		t.Error("no statistics and no error")
	}
}

func TestACommandIsEndedAtItsLimitWithAllItStarted(t *testing.T) {
	c := words("sh", "-c", "sleep 60 & sleep 60; wait")
	c.limit = 20 * time.Millisecond
	_, err := c.run(t.Context())
	var late *tooLongError
	if !errors.As(err, &late) {
		t.Errorf("got %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wellFormed(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

// Results is the content of bench/results.json. Each part is from one run.
type Results struct {
	Sizes    Sizes    `json:"sizes"`
	Pushes   Pushes   `json:"pushes"`
	Downtime Downtime `json:"downtime"`
	Logs     Logs     `json:"logs"`
	Stats    Stats    `json:"stats"`
	Relay    Relay    `json:"relay"`
	VM       VM       `json:"vm"`
}

// Machine describes the machine on which a part ran, and the time.
type Machine struct {
	When      string   `json:"when"`
	Processor string   `json:"processor"`
	Cores     int      `json:"cores"`
	System    string   `json:"system"`
	Load      string   `json:"load"` // the machine's load before the run
	Versions  []string `json:"versions"`
}

// Sizes has the results of the part sizes.
type Sizes struct {
	Machine Machine      `json:"machine"`
	Repeat  int          `json:"repeat"`
	Pairs   []PairResult `json:"pairs"`
}

// PairResult has the patches that the tools made for a pair.
type PairResult struct {
	Pair
	Patches []Patch            `json:"patches"`
	OneCore map[string]float64 `json:"applyBytesPerSecondOnOneCore"`
}

// Patch describes the patch that one tool made for one pair.
type Patch struct {
	Tool         string  `json:"tool"`
	Bytes        int64   `json:"bytes"`
	DiffSeconds  float64 `json:"diffSeconds"`
	DiffCPU      float64 `json:"diffProcessorSeconds"` // of all processors together
	DiffMemory   int64   `json:"diffMemoryBytes"`
	ApplySeconds float64 `json:"applySeconds,omitempty"`
	ApplyMemory  int64   `json:"applyMemoryBytes,omitempty"`
	Error        string  `json:"error,omitempty"`
}

func (p *Patch) fail(err error) {
	if err != nil {
		p.Error = err.Error()
	}
}

func (p Patch) String() string {
	if p.Error != "" {
		return "FAILED: " + p.Error
	}
	return fmt.Sprintf("%11d bytes  diff %7.3fs (%7.3fs of processors) %5d MB  apply %6.3fs %4d MB",
		p.Bytes, p.DiffSeconds, p.DiffCPU, p.DiffMemory>>20, p.ApplySeconds, p.ApplyMemory>>20)
}

// Pushes has the results of the part pushes.
type Pushes struct {
	Machine Machine      `json:"machine"`
	Repeat  int          `json:"repeat"`
	Pair    Pair         `json:"pair"`
	Links   []LinkResult `json:"links"`
}

// LinkResult has the times of all ways over one link.
type LinkResult struct {
	Link
	Ways []Push `json:"ways"`
}

// Push has the result of one way over one link.
type Push struct {
	Way     string  `json:"way"`
	Seconds float64 `json:"seconds"`
	// TransferSeconds is the sum of the times that swdt reports for obtaining and transferring
	// the file, until the file is staged and verified. It is without connecting and restarting.
	TransferSeconds float64 `json:"transferSeconds,omitempty"`
	// SwappedSeconds is the time of the command until the new file is verified and in its place. AfterConnect is the
	// median of the same time without that of `ssh true` in the same round.
	SwappedSeconds float64 `json:"swappedSeconds,omitempty"`
	AfterConnect   float64 `json:"afterConnectSeconds,omitempty"`
	Parts          []Part  `json:"parts,omitempty"` // of swdt's push; medians
	Method         string  `json:"method,omitempty"`
	SentBytes      int64   `json:"sentBytes,omitempty"`
	Error          string  `json:"error,omitempty"`
}

// Part is a part of swdt's push.
type Part struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

func (p Push) String() string {
	if p.Error != "" {
		return "FAILED: " + p.Error
	}
	more := ""
	if p.Method != "" {
		more = fmt.Sprintf("  (%s, %d bytes, staged after %.3fs; swapped `ssh true` + %.3fs;", p.Method, p.SentBytes, p.TransferSeconds, p.AfterConnect)
		for _, part := range p.Parts {
			more += fmt.Sprintf(" %s %.3f", part.Name, part.Seconds)
		}
		more += ")"
	}
	return fmt.Sprintf("%7.3fs%s", p.Seconds, more)
}

// Downtime has the results of the part downtime.
type Downtime struct {
	Machine Machine          `json:"machine"`
	Sizes   []DowntimeOfSize `json:"sizes"`
}

// DowntimeOfSize has the downtimes of a service with a binary of Bytes, one for each push.
type DowntimeOfSize struct {
	Bytes   int64     `json:"bytes"`
	Seconds []float64 `json:"seconds"`
}

func readResults(path string) (Results, error) {
	var r Results
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w: remove it and measure again", path, err)
	}
	return r, nil
}

func (r Results) write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// describeMachine describes the machine of the measurements. It omits facts that it
// cannot find.
func describeMachine(ctx context.Context) Machine {
	m := Machine{When: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Cores: runtime.NumCPU()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if value, ok := strings.CutPrefix(line, "model name"); ok {
				m.Processor = strings.TrimSpace(strings.TrimLeft(value, "\t :"))
				break
			}
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(load), " ")
	}
	m.System, _ = output(ctx, "sh", "-c", `. /etc/os-release; echo "$PRETTY_NAME, Linux $(uname -r)"`)
	m.Versions = append(m.Versions, strings.Replace(runtime.Version(), "go", "Go ", 1))
	for _, c := range []string{
		"zstd --version | grep -o 'v[0-9.]*' | sed 's/^v/zstd /'",
		"rsync --version | head -1 | awk '{print \"rsync \" $3}'",
		"xdelta3 -V 2>&1 | head -1 | awk '{print \"xdelta3 \" $3}' | tr -d ,",
		"dpkg-query -W -f 'bsdiff ${Version}' bsdiff",
		"ssh -V 2>&1 | cut -d, -f1 | tr _ ' '",
		"wine --version | awk '{print $1}'",
		"qemu-system-x86_64 --version | head -1 | awk '{print \"QEMU \" $4}'",
	} {
		if version, err := output(ctx, "sh", "-c", c); err == nil && version != "" {
			m.Versions = append(m.Versions, strings.SplitN(version, "\n", 2)[0])
		}
	}
	return m
}

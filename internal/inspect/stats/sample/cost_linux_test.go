package sample_test

import (
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
	"github.com/swdt-dev/swdt/internal/inspect/stats/sample"
)

// BenchmarkTwoHundredPods measures the cost of watching 200 pods for one second. An
// operation requests, follows, judges and records one answer. The simulated runtime works
// in the same process, so the result is too high by its share.
func BenchmarkTwoHundredPods(b *testing.B) {
	cri := sample.NewCRI(serve(b, "v1.7.12", 200).Runtime, 4, false)
	follower, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
	w, err := record.Create(filepath.Join(b.TempDir(), "r"), record.Meta{Sources: []stats.Source{stats.CRI}})
	if err != nil {
		b.Fatal(err)
	}
	began, second := time.Now(), time.Duration(0)
	answer := func() {
		samples, cores, err := cri.Ask(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		second += time.Second // the benchmark does not wait; it advances the time itself
		r := stats.Reading{Node: "win", Source: stats.CRI, Received: began.Add(second), Cores: cores, Samples: samples}
		for i := range r.Samples {
			r.Samples[i].Taken = r.Received
			*r.Samples[i].Counter += uint64(second / 5)
		}
		tally.Add(r, follower.Add(r))
		if err := w.Add(r); err != nil {
			b.Fatal(err)
		}
	}
	for range 300 { // as after five minutes
		answer()
	}
	before := cpu(b)
	for b.Loop() {
		answer()
	}
	b.ReportMetric(100*(cpu(b)-before).Seconds()/float64(b.N), "%-of-a-core-at-1s")
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapAlloc)/1e6, "MB-heap")
	b.ReportMetric(float64(memory.Sys)/1e6, "MB-from-the-system")
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	runtime.KeepAlive(tally)
}

func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

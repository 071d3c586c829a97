package netprobe

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// MaxThreads bounds the threads of a load.
	MaxThreads = 16
	// MaxLoad bounds the time of a load.
	MaxLoad = 5 * time.Minute
	// MaxFill bounds the memory of a load, in bytes.
	MaxFill = 4 << 30
	// fillStep is the size of one allocation, and page that of the smallest page of memory.
	fillStep, page = 8 << 20, 4 << 10
)

// load uses CPU time and memory. The memory stays allocated until the probe ends.
func (p *probe) load(ctx context.Context, l Load) (Loaded, error) {
	limit := time.Duration(l.MS) * time.Millisecond
	switch {
	case l.Threads < 0 || l.Threads > MaxThreads:
		return Loaded{}, fmt.Errorf("%d threads: a load has at most %d", l.Threads, MaxThreads)
	case limit < 0 || limit > MaxLoad:
		return Loaded{}, fmt.Errorf("a load of %s: it takes at most %s", limit, MaxLoad)
	case l.Bytes < 0 || l.Bytes > MaxFill:
		return Loaded{}, fmt.Errorf("%d bytes: a load has at most %d", l.Bytes, MaxFill)
	}
	p.fill(l.Bytes)
	before, err := processTime()
	if err != nil {
		return Loaded{}, fmt.Errorf("read the CPU time of the probe: %w", err)
	}
	begin := time.Now()
	burn(ctx, l.Threads, limit)
	took := time.Since(begin)
	after, err := processTime()
	if err != nil {
		return Loaded{}, fmt.Errorf("read the CPU time of the probe: %w", err)
	}
	return Loaded{CPUMS: (after - before).Milliseconds(), WallMS: took.Milliseconds(), Bytes: l.Bytes}, nil
}

// fill allocates memory and writes to each page of it, since a system may grant memory before it has it.
// If the system refuses, the process ends.
func (p *probe) fill(bytes int64) {
	for bytes > 0 {
		part := make([]byte, min(bytes, fillStep))
		for i := 0; i < len(part); i += page {
			part[i] = 1
		}
		p.filled = append(p.filled, part)
		bytes -= int64(len(part))
	}
}

// burn keeps threads busy for a time.
func burn(ctx context.Context, threads int, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var running sync.WaitGroup
	for range threads {
		running.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	running.Wait()
}

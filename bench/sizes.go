//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
)

// sizes makes and applies a patch of every pair with every tool.
func (b *bench) sizes(ctx context.Context) (Sizes, error) {
	pairs, err := b.allPairs(ctx)
	if err != nil {
		return Sizes{}, err
	}
	s := Sizes{Repeat: b.repeat}
	for _, p := range pairs {
		result := PairResult{Pair: p}
		for _, t := range b.tools() {
			cell := b.patch(ctx, p, t)
			if err := ctx.Err(); err != nil {
				return s, err
			}
			result.Patches = append(result.Patches, cell)
			say("%-19s %-22s %s", p.Name, t.name, cell)
		}
		cell := Patch{Tool: "rsync -z"}
		bytes, took, err := b.rsyncLocal(ctx, p)
		cell.Bytes, cell.DiffSeconds, cell.DiffMemory = bytes, took.seconds, took.memory
		cell.fail(err)
		say("%-19s %-22s %s", p.Name, cell.Tool, cell)
		result.Patches = append(result.Patches, cell)
		if result.OneCore, err = b.oneCore(ctx, p); err != nil {
			say("%-19s applying on one core: %v", p.Name, err)
		}
		s.Pairs = append(s.Pairs, result)
	}
	return s, nil
}

// patch is one cell of the table: made, applied, compared.
func (b *bench) patch(ctx context.Context, p Pair, t tool) Patch {
	cell := Patch{Tool: t.name}
	cell.fail(b.fill(ctx, p, t, &cell))
	return cell
}

func (b *bench) fill(ctx context.Context, p Pair, t tool, cell *Patch) error {
	patch, out := filepath.Join(b.work, "patch"), filepath.Join(b.work, "out")
	made, err := repeated(b.repeat, func() (taken, error) { return t.diff(p.old, p.new, patch).run(ctx) })
	if err != nil {
		return err
	}
	cell.DiffSeconds, cell.DiffMemory = made.seconds, made.memory
	if cell.Bytes, err = sizeOf(patch); err != nil {
		return err
	}
	applied, err := repeated(b.repeat, func() (taken, error) { return t.apply(p.old, patch, out).run(ctx) })
	if err != nil {
		return err
	}
	cell.ApplySeconds, cell.ApplyMemory = applied.seconds, applied.memory
	return expectSame(out, p.new)
}

// oneCore is how many bytes a second swdt's patches give when they are applied
// on one core, verified and written.
func (b *bench) oneCore(ctx context.Context, p Pair) (map[string]float64, error) {
	rates := map[string]float64{}
	patch, out := filepath.Join(b.work, "patch"), filepath.Join(b.work, "out")
	for _, variant := range []string{"fast", "small"} {
		t := b.swdtTool("swdt "+variant, variant)
		if _, err := t.diff(p.old, p.new, patch).run(ctx); err != nil {
			return rates, err
		}
		var rate []float64
		for range b.repeat {
			c := t.apply(p.old, patch, out)
			c.env = []string{"GOMAXPROCS=1"}
			took, err := c.run(ctx)
			if err != nil {
				return rates, err
			}
			var told struct{ ApplySeconds float64 }
			if err := json.Unmarshal(took.stdout, &told); err != nil {
				return rates, fmt.Errorf("%s: %w", c, err)
			}
			rate = append(rate, float64(p.NewBytes)/told.ApplySeconds)
		}
		rates[t.name] = median(rate)
	}
	return rates, nil
}

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

// patchLimit bounds the time to make or to apply a patch. A tool that needs more is of no use.
const patchLimit = 90 * time.Second

// sizes makes and applies a patch of every pair with every tool.
func (b *bench) sizes(ctx context.Context) (Sizes, error) {
	pairs, err := b.allPairs(ctx)
	if err != nil {
		return Sizes{}, err
	}
	s := Sizes{Repeat: b.repeat}
	for _, p := range pairs {
		result := PairResult{Pair: p, Patches: b.patches(ctx, p)}
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if result.OneCore, err = b.oneCore(ctx, p); err != nil {
			logf("%-19s applying on one core: %v", p.Name, err)
		}
		s.Pairs = append(s.Pairs, result)
	}
	return s, nil
}

// patches runs the tools by turns, round by round, so that other load on the machine
// affects all of them.
func (b *bench) patches(ctx context.Context, p Pair) []Patch {
	tools := append(b.tools(), tool{name: "rsync -z"})
	rounds := make([][]Patch, len(tools))
	for range b.repeat {
		for i, t := range tools {
			if ctx.Err() == nil && !done(rounds[i]) {
				rounds[i] = append(rounds[i], b.patch(ctx, p, t))
			}
		}
	}
	var cells []Patch
	for i, t := range tools {
		cell := medianPatch(rounds[i])
		logf("%-19s %-22s %s", p.Name, t.name, cell)
		cells = append(cells, cell)
	}
	return cells
}

// done reports whether a tool is not measured again, since it failed or takes too long.
func done(rounds []Patch) bool {
	if len(rounds) == 0 {
		return false
	}
	last := rounds[len(rounds)-1]
	return last.Error != "" || last.DiffSeconds > slow
}

func medianPatch(rounds []Patch) Patch {
	if len(rounds) == 0 {
		return Patch{Error: "not run"}
	}
	cell := rounds[len(rounds)-1]
	var diff, cpu, apply []float64
	for _, r := range rounds {
		diff, cpu, apply = append(diff, r.DiffSeconds), append(cpu, r.DiffCPU), append(apply, r.ApplySeconds)
		cell.DiffMemory, cell.ApplyMemory = max(cell.DiffMemory, r.DiffMemory), max(cell.ApplyMemory, r.ApplyMemory)
	}
	cell.DiffSeconds, cell.DiffCPU, cell.ApplySeconds = median(diff), median(cpu), median(apply)
	return cell
}

// patch makes a patch, applies it and compares the result.
func (b *bench) patch(ctx context.Context, p Pair, t tool) Patch {
	cell := Patch{Tool: t.name}
	if t.diff == nil {
		cell.fail(b.rsyncLocal(ctx, p, &cell))
	} else {
		cell.fail(b.fill(ctx, p, t, &cell))
	}
	return cell
}

func (b *bench) fill(ctx context.Context, p Pair, t tool, cell *Patch) error {
	patch, out := filepath.Join(b.work, "patch"), filepath.Join(b.work, "out")
	diff, apply := t.diff(p.old, p.new, patch), t.apply(p.old, patch, out)
	diff.limit, apply.limit = patchLimit, patchLimit
	made, err := diff.run(ctx)
	if err != nil {
		return err
	}
	cell.DiffSeconds, cell.DiffCPU, cell.DiffMemory = made.seconds, made.cpu, made.memory
	if cell.Bytes, err = sizeOf(patch); err != nil {
		return err
	}
	applied, err := apply.run(ctx)
	if err != nil {
		return err
	}
	cell.ApplySeconds, cell.ApplyMemory = applied.seconds, applied.memory
	return expectSame(out, p.new)
}

// oneCore returns the rates at which one core applies swdt's patches, by variant, in bytes of the new
// file a second. Verifying and writing the new file is part of the time.
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
			var applied struct{ ApplySeconds float64 }
			if err := json.Unmarshal(took.stdout, &applied); err != nil {
				return rates, fmt.Errorf("%s: %w", c, err)
			}
			rate = append(rate, float64(p.NewBytes)/applied.ApplySeconds)
		}
		rates[t.name] = median(rate)
	}
	return rates, nil
}

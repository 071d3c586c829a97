package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// Assumptions until measurements exist, for two cores of average speed.
const (
	assumedFastDiff  = 500e6 // bytes per second, of both files together
	assumedSmallDiff = 375e6
	assumedFastPart  = 1.0 / 200 // size of a patch, divided by the size of the new file
	largestPart      = 0.03      // upper bound of a measured patch ratio: one odd build predicts little about the next
	assumedGain      = 0.4       // size of Small's patch, divided by the size of Fast's patch
	assumedApply     = 250e6     // bytes of the new file per second that the node makes from a patch and verifies
	assumedPlain     = 250e6     // bytes per second sent uncompressed, if the link is fast enough
	assumedCompress  = 250e6     // bytes per second sent compressed, if the link is fast enough
	assumedRatio     = 0.35      // size of a program after zstd's fastest level, divided by the program's size

	// filesKnown bounds the number of programs whose patch sizes are remembered.
	filesKnown = 64
	// bound is a factor. If a send took longer than the time of the link alone multiplied by this
	// factor, something other than the link slowed the send.
	bound = 1.2
	// nearly is a factor. Compressing is chosen if its time is below the time of sending
	// uncompressed multiplied by this factor, since other users share the link.
	nearly = 1.1
)

// rates are measured speeds, in bytes per second: of the processors on both sides, of SSH and of
// the node's disk. Ratio is not a speed but a compression ratio. 0: not measured yet.
type rates struct {
	Fast     float64 `json:"fast"`  // both files together
	Small    float64 `json:"small"` // both files together
	Apply    float64 `json:"apply"`
	Plain    float64 `json:"plain"`
	Compress float64 `json:"compress"`
	Ratio    float64 `json:"ratio"` // compressed size, divided by the size of the file
}

// parts are measured sizes of patches, each divided by the size of the new file. 0: not measured
// yet.
type parts struct {
	Fast  float64 `json:"fast"`
	Small float64 `json:"small"`
}

// costs are the measured costs of sending, from your machine to its nodes, and the sizes
// of patches, in general and for each program. The zero value uses assumptions.
type costs struct {
	mu    sync.Mutex
	rates rates
	parts parts
	files map[string]program // by the program's name
	order []string           // the names in files, least recently used first
}

// program has the measurements of one program.
type program struct {
	parts
	stands string // SHA-256 of the build that the last push left on a node; empty: unknown
}

// estimate is a snapshot of the costs of one program. Sends with the same estimate make the
// same decision if the speeds of their links are similar.
type estimate struct {
	rates rates
	parts parts
}

// of returns the estimate for a program: its own last patches predict its next patch best.
func (c *costs) of(name string) estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return estimate{c.rates, c.files[name].or(c.parts)}
}

// installed returns the SHA-256 of the build of a program that the last push left on a node.
func (c *costs) installed(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files[name].stands
}

// recordInstalled records the build of a program that a push has left on a node. It reports whether
// that build differs from the last recorded one.
func (c *costs) recordInstalled(name, sha string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	file := c.touch(name)
	if file.stands == sha {
		return false
	}
	file.stands = sha
	c.files[name] = file
	return true
}

func (r rates) diff(v delta.Variant) float64 {
	fast := cmp.Or(r.Fast, assumedFastDiff)
	if v == delta.Small { // an unmeasured rate of Small is derived from the rate of Fast
		return cmp.Or(r.Small, fast*assumedSmallDiff/assumedFastDiff)
	}
	return fast
}

func (p parts) or(other parts) parts {
	if p == (parts{}) {
		return other
	}
	return p
}

func (p parts) of(v delta.Variant) float64 {
	fast := cmp.Or(p.Fast, p.Small/assumedGain, assumedFastPart)
	if v == delta.Small {
		return cmp.Or(p.Small, fast*assumedGain)
	}
	return fast
}

// recordDiff records the cost of making a patch. When one program is pushed repeatedly, each patch
// costs about the same as the last one.
func (c *costs) recordDiff(v delta.Variant, name string, oldSize, newSize, patchSize int64, took time.Duration) {
	rate := float64(oldSize+newSize) / max(took.Seconds(), 1e-6)
	part := min(float64(patchSize)/float64(max(newSize, 1)), largestPart)
	c.mu.Lock()
	defer c.mu.Unlock()
	file := c.touch(name)
	switch v {
	case delta.Fast:
		merge(&c.rates.Fast, rate)
		merge(&c.parts.Fast, part)
		merge(&file.Fast, part)
	case delta.Small:
		merge(&c.rates.Small, rate)
		merge(&c.parts.Small, part)
		merge(&file.Small, part)
	}
	c.files[name] = file
}

// touch returns the record of a program, and makes it the most recently used. It is
// called with the lock held.
func (c *costs) touch(name string) program {
	if c.files == nil {
		c.files = map[string]program{}
	}
	c.order = append(slices.DeleteFunc(c.order, func(other string) bool { return other == name }), name)
	if len(c.order) > filesKnown {
		delete(c.files, c.order[0])
		c.order = c.order[1:]
	}
	return c.files[name]
}

// merge merges a new measurement into a known value. The latest measurement has the most weight.
func merge(known *float64, seen float64) {
	if *known == 0 {
		*known = seen
	}
	*known = (*known + 3*seen) / 4
}

// recordWhole records how long sending all bytes took. If the time was hardly longer than the time
// of the link alone, that time only shows that the processors and disks are at least as fast as the
// link.
func (c *costs) recordWhole(plain, sent int64, compressed bool, link node.Reading, took time.Duration) {
	if plain < informative || took <= 0 {
		return
	}
	rate := float64(plain) / took.Seconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	known, assumed := &c.rates.Plain, assumedPlain
	if compressed {
		known, assumed = &c.rates.Compress, assumedCompress
		merge(&c.rates.Ratio, float64(sent)/float64(plain))
	}
	slower := took.Seconds() > bound*(secondsOn(float64(sent), link)+2*link.RoundTrip.Seconds())
	if slower || rate > cmp.Or(*known, assumed) {
		merge(known, rate)
	}
}

// recordApply records how fast a node applied a patch, if the link hardly delayed it.
func (c *costs) recordApply(newSize, patchSize int64, link node.Reading, took time.Duration) {
	if newSize < informative || took <= 0 || secondsOn(float64(patchSize), link) > took.Seconds()/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	merge(&c.rates.Apply, float64(newSize)/took.Seconds())
}

// way is one of the ways to send a file, with the expected time.
type way struct {
	whole      bool
	compressed bool          // only valid if whole is true
	variant    delta.Variant // only valid if whole is false
	seconds    float64
}

func (w way) String() string {
	switch {
	case w.whole && w.compressed:
		return fmt.Sprintf("all bytes, compressed, in some %.2fs", w.seconds)
	case w.whole:
		return fmt.Sprintf("all bytes, in some %.2fs", w.seconds)
	}
	return fmt.Sprintf("a %s patch, in some %.2fs", w.variant, w.seconds)
}

// pair has the sizes of the old and the new file, in bytes.
type pair struct{ old, new int64 }

// available reports whether a patch of the variant costs nothing more to make, because it exists or
// is already being made.
type available func(delta.Variant) bool

// choose returns the fastest way to send a file: usually the whole file on a fast link, a
// quickly made patch on an ordinary link, and the smallest patch on a slow one. The sizes
// of the files and the speed of your machine decide which links are fast or slow.
func (e estimate) choose(p pair, link node.Reading, made available) way {
	best := e.whole(p.new, link)
	for _, v := range []delta.Variant{delta.Fast, delta.Small} {
		seconds := e.patch(int64(e.parts.of(v)*float64(p.new)), p.new, link)
		if !made(v) {
			seconds += e.diff(v, p)
		}
		if seconds < best.seconds {
			best = way{variant: v, seconds: seconds}
		}
	}
	return best
}

// worthSmall reports whether to make the Small patch too, once the size of the Fast patch is known.
// It returns true if the Small patch saves clearly more time on the link than your machine needs to
// make it.
func (e estimate) worthSmall(p pair, fastPatch int64, link node.Reading) bool {
	if link.BytesPerSecond == 0 {
		return false
	}
	gain := min(e.parts.of(delta.Small)/e.parts.of(delta.Fast), 1)
	saved := secondsOn(float64(fastPatch)*(1-gain), link)
	return saved > 1.2*e.diff(delta.Small, p)
}

// diff returns the seconds that making a patch takes.
func (e estimate) diff(v delta.Variant, p pair) float64 {
	return float64(p.old+p.new) / e.rates.diff(v)
}

// whole returns the faster way to send all bytes, compressed or not. It also chooses compressing if
// compressing is slower by less than the factor nearly, or if the speed of the link is unknown.
func (e estimate) whole(size int64, link node.Reading) way {
	n, trips := float64(size), 2*link.RoundTrip.Seconds()
	plain := way{whole: true, seconds: trips + max(secondsOn(n, link), n/cmp.Or(e.rates.Plain, assumedPlain))}
	compressed := way{whole: true, compressed: true, seconds: trips +
		max(secondsOn(n*cmp.Or(e.rates.Ratio, assumedRatio), link), n/cmp.Or(e.rates.Compress, assumedCompress))}
	if compressed.seconds < nearly*plain.seconds || link.BytesPerSecond == 0 {
		return compressed
	}
	return plain
}

// patch returns the seconds that sending and applying an existing patch takes.
func (e estimate) patch(patchSize, newSize int64, link node.Reading) float64 {
	return link.RoundTrip.Seconds() + secondsOn(float64(patchSize), link) + float64(newSize)/cmp.Or(e.rates.Apply,
		assumedApply)
}

func secondsOn(bytes float64, link node.Reading) float64 {
	if link.BytesPerSecond == 0 {
		return 0
	}
	return bytes / link.BytesPerSecond
}

// decay adjusts the measured speeds of the methods that this transfer does not use; the methods are
// a patch, all bytes compressed, and all bytes uncompressed. A measured speed that is below the
// assumed speed moves towards the assumed speed. Without decay, a method that was slow once on a
// busy machine would never be used and measured again.
func (c *costs) decay(taken way) {
	c.mu.Lock()
	defer c.mu.Unlock()
	toward := func(rate *float64, assumed float64) {
		if *rate != 0 && *rate < assumed {
			*rate += (assumed - *rate) / 16
		}
	}
	if !taken.whole {
		toward(&c.rates.Plain, assumedPlain)
		toward(&c.rates.Compress, assumedCompress)
		return
	}
	toward(&c.rates.Fast, assumedFastDiff)
	toward(&c.rates.Small, assumedSmallDiff)
	toward(&c.rates.Apply, assumedApply)
	if taken.compressed {
		toward(&c.rates.Plain, assumedPlain)
	} else {
		toward(&c.rates.Compress, assumedCompress)
	}
}

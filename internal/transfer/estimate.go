package transfer

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/delta"
	"github.com/swdt-dev/swdt/internal/node"
)

// What is assumed until it was measured, on the two slow cores of a laptop on
// battery: too slow rather than too fast, since whole files are the safe choice.
const (
	assumedFastDiff  = 600e6 // bytes per second, of both files together
	assumedSmallDiff = 450e6
	assumedFastPart  = 1.0 / 200 // of the new file, that a patch is
	largestPart      = 0.03      // that is believed: one odd build says little of the next
	assumedGain      = 0.4       // of Fast's patch, that Small's is
	assumedApply     = 300e6     // bytes per second that the node makes of a patch
	assumedReceive   = 300e6     // bytes per second that the node takes in, at most
	assumedCompress  = 200e6     // bytes per second of zstd's fastest level
	assumedRatio     = 0.35      // of a program that zstd's fastest level leaves
)

// costs is what sending cost so far, on this host and its nodes, and what patches
// came to. The zero value assumes.
type costs struct {
	mu       sync.Mutex
	seen     map[delta.Variant]cost
	compress float64 // bytes per second; 0: assumed
	ratio    float64 // of a file that compression leaves
}

type cost struct {
	Rate float64 `json:"rate"` // bytes per second, of both files together
	Part float64 `json:"part"` // of the new file, that the patch was
}

func (c *costs) of(v delta.Variant) cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen, ok := c.seen[v]; ok {
		return seen
	}
	if v == delta.Fast {
		return assumed(v)
	}
	if fast, ok := c.seen[delta.Fast]; ok { // the same files, on the same host
		return cost{fast.Rate * assumedSmallDiff / assumedFastDiff, fast.Part * assumedGain}
	}
	return assumed(v)
}

func assumed(v delta.Variant) cost {
	if v == delta.Small {
		return cost{assumedSmallDiff, assumedFastPart * assumedGain}
	}
	return cost{assumedFastDiff, assumedFastPart}
}

// saw notes what a diff cost. What the latest came to says most about the next:
// in an inner loop they are alike.
func (c *costs) saw(v delta.Variant, oldSize, newSize, patchSize int64, took time.Duration) {
	now := cost{
		Rate: float64(oldSize+newSize) / max(took.Seconds(), 1e-6),
		Part: min(float64(patchSize)/float64(max(newSize, 1)), largestPart),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[delta.Variant]cost{}
	}
	if before, ok := c.seen[v]; ok {
		now.Rate, now.Part = (now.Rate+before.Rate)/2, (now.Part+before.Part)/2
	}
	c.seen[v] = now
}

// sawCompress notes what compressing a program took and what it was good for.
func (c *costs) sawCompress(plain, sent int64, took time.Duration) {
	if plain < probeSize || took <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compress, c.ratio = float64(plain)/took.Seconds(), float64(sent)/float64(plain)
}

// way is one of the ways to get a file across, and the time it should take.
type way struct {
	whole   bool
	variant delta.Variant // unless whole
	seconds float64
}

func (w way) String() string {
	if w.whole {
		return fmt.Sprintf("all bytes, in some %.2fs", w.seconds)
	}
	return fmt.Sprintf("a %s patch, in some %.2fs", w.variant, w.seconds)
}

// there says which patches cost nothing any more: somebody has them made.
type there func(delta.Variant) bool

// choose takes the way that should be over first: the whole file on a fast link,
// a patch that is quickly made on an ordinary one, the smallest on a slow one.
// Which links are what depends on the files and on this host.
func (c *costs) choose(oldSize, newSize int64, link node.Reading, made there) way {
	best := way{whole: true, seconds: c.wholeSeconds(newSize, link)}
	for _, v := range []delta.Variant{delta.Fast, delta.Small} {
		cost := c.of(v)
		diff := float64(oldSize+newSize) / cost.Rate
		if made(v) {
			diff = 0
		}
		seconds := diff + patchSeconds(int64(cost.Part*float64(newSize)), newSize, link)
		if seconds < best.seconds {
			best = way{variant: v, seconds: seconds}
		}
	}
	if best.whole {
		c.fade()
	}
	return best
}

// fade believes a little less of what was seen: a host that was busy once must not
// send whole files for ever, which tell it nothing new.
func (c *costs) fade() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for v, seen := range c.seen {
		seen.Rate += (assumed(v).Rate - seen.Rate) / 4
		c.seen[v] = seen
	}
}

// worthSmall is whether to make the smaller patch after all, now that the size of
// the fast one is known: whether the link needs longer for the difference than
// this host to make it.
func (c *costs) worthSmall(oldSize, newSize, fastPatch int64, link node.Reading) bool {
	if link.BytesPerSecond == 0 {
		return false
	}
	diff := float64(oldSize+newSize) / c.of(delta.Small).Rate
	saved := float64(fastPatch) * (1 - assumedGain) / link.BytesPerSecond
	return saved > 1.2*diff
}

// wholeSeconds is how long all bytes need, compressed where that is faster. An
// unknown link counts as no obstacle.
func (c *costs) wholeSeconds(size int64, link node.Reading) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := float64(size)
	compressed := max(over(n*cmp.Or(c.ratio, assumedRatio), link), n/cmp.Or(c.compress, assumedCompress))
	return 2*link.RoundTrip.Seconds() + max(min(over(n, link), compressed), n/assumedReceive)
}

// patchSeconds is how long a patch that is there needs to become a file.
func patchSeconds(patchSize, newSize int64, link node.Reading) float64 {
	return link.RoundTrip.Seconds() + over(float64(patchSize), link) + float64(newSize)/assumedApply
}

func over(bytes float64, link node.Reading) float64 {
	if link.BytesPerSecond == 0 {
		return 0
	}
	return bytes / link.BytesPerSecond
}

package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/delta"
	"github.com/swdt-dev/swdt/internal/node"
)

// What is assumed until it was measured, on two cores of no great speed.
const (
	assumedFastDiff  = 500e6 // bytes per second, of both files together
	assumedSmallDiff = 375e6
	assumedFastPart  = 1.0 / 200 // of the new file, that a patch is
	largestPart      = 0.03      // that is believed: one odd build says little of the next
	assumedGain      = 0.4       // of Fast's patch, that Small's is
	assumedApply     = 250e6     // bytes per second that the node makes of a patch, and verifies
	assumedPlain     = 250e6     // bytes per second that are sent as they are, where the link lets them
	assumedCompress  = 250e6     // bytes per second that are sent compressed, where the link lets them
	assumedRatio     = 0.35      // of a program that zstd's fastest level leaves

	// filesKnown bounds the programs whose patches' sizes are remembered.
	filesKnown = 64
	// bound says by how much a send must have taken longer than the link by itself
	// for that to be due to something else.
	bound = 1.2
	// nearly is by how much compressing may take longer and be better all the same:
	// the link is others' too.
	nearly = 1.1
)

// rates are what things cost, in bytes per second: of the processors here and
// there, of SSH, of the node's disk. 0: not seen yet.
type rates struct {
	Fast     float64 `json:"fast"`  // both files together
	Small    float64 `json:"small"` // both files together
	Apply    float64 `json:"apply"`
	Plain    float64 `json:"plain"`
	Compress float64 `json:"compress"`
	Ratio    float64 `json:"ratio"` // of a file that compression leaves
}

// parts are what patches came to, as a part of the new file. 0: not seen yet.
type parts struct {
	Fast  float64 `json:"fast"`
	Small float64 `json:"small"`
}

// costs is what sending cost so far, on this host and its nodes, and what patches
// came to, in general and of each program. The zero value assumes.
type costs struct {
	mu    sync.Mutex
	rates rates
	parts parts
	files map[string]program // by the program's name
	order []string           // of those, the one used longest ago first
}

// program is what is known of one.
type program struct {
	parts
	stands string // SHA-256 of the build that the last push left on a node; empty: not known
}

// estimate is what costs were thought to be at one time, of one program. Sends that
// share one come to the same decision, where their links are alike.
type estimate struct {
	rates rates
	parts parts
}

// of a program: what its own last patches came to says most about the next.
func (c *costs) of(name string) estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return estimate{c.rates, c.files[name].or(c.parts)}
}

// standing is the build of a program that the last push left on a node.
func (c *costs) standing(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files[name].stands
}

// stands notes that build; false: it was known.
func (c *costs) stands(name, sha string) bool {
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
	if v == delta.Small { // unless seen, by its sister: the same files, on the same host
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

// sawDiff notes what a diff cost. In an inner loop one is like the other.
func (c *costs) sawDiff(v delta.Variant, name string, oldSize, newSize, patchSize int64, took time.Duration) {
	rate := float64(oldSize+newSize) / max(took.Seconds(), 1e-6)
	part := min(float64(patchSize)/float64(max(newSize, 1)), largestPart)
	c.mu.Lock()
	defer c.mu.Unlock()
	file := c.touch(name)
	switch v {
	case delta.Fast:
		learn(&c.rates.Fast, rate)
		learn(&c.parts.Fast, part)
		learn(&file.Fast, part)
	case delta.Small:
		learn(&c.rates.Small, rate)
		learn(&c.parts.Small, part)
		learn(&file.Small, part)
	}
	c.files[name] = file
}

// touch returns what is known of a program, now the latest in use. It is
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

// learn believes what was seen last most of all.
func learn(known *float64, seen float64) {
	if *known == 0 {
		*known = seen
	}
	*known = (*known + 3*seen) / 4
}

// sawWhole notes what sending all bytes took. What took hardly longer than the
// link by itself says that the rest is no slower, and no more.
func (c *costs) sawWhole(plain, sent int64, compressed bool, link node.Reading, took time.Duration) {
	if plain < telling || took <= 0 {
		return
	}
	rate := float64(plain) / took.Seconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	known, assumed := &c.rates.Plain, assumedPlain
	if compressed {
		known, assumed = &c.rates.Compress, assumedCompress
		learn(&c.rates.Ratio, float64(sent)/float64(plain))
	}
	slower := took.Seconds() > bound*(over(float64(sent), link)+2*link.RoundTrip.Seconds())
	if slower || rate > cmp.Or(*known, assumed) {
		learn(known, rate)
	}
}

// sawApply notes how fast a node made a file of a patch that was hardly waited for.
func (c *costs) sawApply(newSize, patchSize int64, link node.Reading, took time.Duration) {
	if newSize < telling || took <= 0 || over(float64(patchSize), link) > took.Seconds()/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	learn(&c.rates.Apply, float64(newSize)/took.Seconds())
}

// way is one of the ways to get a file across, and the time it should take.
type way struct {
	whole      bool
	compressed bool          // if whole
	variant    delta.Variant // unless whole
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

// pair is the sizes of what is there and what is to be, in bytes.
type pair struct{ old, new int64 }

// there says which patches cost nothing any more: somebody has them made.
type there func(delta.Variant) bool

// choose takes the way that should be over first: the whole file on a fast link,
// a patch that is quickly made on an ordinary one, the smallest on a slow one.
// Which links are what depends on the files and on this host.
func (e estimate) choose(p pair, link node.Reading, made there) way {
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

// worthSmall is whether to make the smaller patch after all, now that the size of
// the fast one is known: whether the link needs longer for the difference than
// this host to make it.
func (e estimate) worthSmall(p pair, fastPatch int64, link node.Reading) bool {
	if link.BytesPerSecond == 0 {
		return false
	}
	gain := min(e.parts.of(delta.Small)/e.parts.of(delta.Fast), 1)
	saved := over(float64(fastPatch)*(1-gain), link)
	return saved > 1.2*e.diff(delta.Small, p)
}

// diff is how long a patch takes to be made.
func (e estimate) diff(v delta.Variant, p pair) float64 {
	return float64(p.old+p.new) / e.rates.diff(v)
}

// whole is the faster way of sending all bytes. An unknown link counts as no
// obstacle, but lets fewer bytes seem better.
func (e estimate) whole(size int64, link node.Reading) way {
	n, trips := float64(size), 2*link.RoundTrip.Seconds()
	plain := way{whole: true, seconds: trips + max(over(n, link), n/cmp.Or(e.rates.Plain, assumedPlain))}
	compressed := way{whole: true, compressed: true, seconds: trips +
		max(over(n*cmp.Or(e.rates.Ratio, assumedRatio), link), n/cmp.Or(e.rates.Compress, assumedCompress))}
	if compressed.seconds < nearly*plain.seconds || link.BytesPerSecond == 0 {
		return compressed
	}
	return plain
}

// patch is how long a patch that is there needs to become a file.
func (e estimate) patch(patchSize, newSize int64, link node.Reading) float64 {
	return link.RoundTrip.Seconds() + over(float64(patchSize), link) + float64(newSize)/cmp.Or(e.rates.Apply, assumedApply)
}

func over(bytes float64, link node.Reading) float64 {
	if link.BytesPerSecond == 0 {
		return 0
	}
	return bytes / link.BytesPerSecond
}

// fade believes a little less of what was seen of the ways not taken: what was
// slow once, on a busy host, must not be left aside for ever, where nothing new is
// seen of it.
func (c *costs) fade(taken way) {
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

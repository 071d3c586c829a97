package transfer

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/delta"
)

func reading(megabytes float64, roundTrip time.Duration) node.Reading {
	return node.Reading{BytesPerSecond: megabytes * 1e6, RoundTrip: roundTrip}
}

func none(delta.Variant) bool { return false }

func onlyFast(v delta.Variant) bool { return v == delta.Fast }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

const kubeletSize = 83_500_000

var (
	fastLink = reading(2000, 0)
	kubelets = pair{kubeletSize, kubeletSize}
)

// kubelet returns the costs of a host that has made patches of kubelets, and of nodes that applied
// them.
func kubelet() *costs {
	c := &costs{}
	c.recordDiff(delta.Fast, "kubelet", kubeletSize, kubeletSize, 145_000, 310*time.Millisecond)
	c.recordDiff(delta.Small, "kubelet", kubeletSize, kubeletSize, 39_000, 400*time.Millisecond)
	c.recordApply(kubeletSize, 145_000, fastLink, 250*time.Millisecond)
	c.recordWhole(kubeletSize, 25_000_000, true, fastLink, 450*time.Millisecond)
	c.recordWhole(kubeletSize, kubeletSize, false, fastLink, 350*time.Millisecond)
	return c
}

func TestTheWayDependsOnTheLink(t *testing.T) {
	for name, c := range map[string]struct {
		link node.Reading
		want string
	}{
		"memory":           {reading(2000, 100*time.Microsecond), "all bytes"},
		"ten gigabit":      {reading(1000, 200*time.Microsecond), "all bytes"},
		"two gigabit":      {reading(220, 300*time.Microsecond), "all bytes"},
		"gigabit":          {reading(110, 300*time.Microsecond), "all bytes, compressed"}, // 0.45 s against 0.56 s
		"a Windows sshd":   {reading(38, time.Millisecond), "a fast patch"},
		"wireless":         {reading(10, 5*time.Millisecond), "a fast patch"},
		"home, uploading":  {reading(1, 50*time.Millisecond), "a small patch"}, // 0.09 s to make, 0.106 s on the link
		"a telephone":      {reading(0.2, 80*time.Millisecond), "a small patch"},
		"nobody knows yet": {node.Reading{}, "all bytes, compressed"},
	} {
		w := kubelet().of("kubelet").choose(kubelets, c.link, none)
		if want := fmt.Sprintf("%s, in some %.2fs", c.want, w.seconds); w.String() != want {
			t.Errorf("%s: %s, want %s", name, w, want)
		}
	}
}

// world has the real properties of a host, a node and the link between them.
type world struct {
	rates rates
	parts parts
	link  node.Reading
}

// takes returns the real duration of a way, in seconds.
func (w world) takes(p pair, way way) float64 {
	size, link := float64(p.new), w.link
	switch {
	case way.compressed:
		return 2*link.RoundTrip.Seconds() + max(secondsOn(size*w.rates.Ratio, link), size/w.rates.Compress)
	case way.whole:
		return 2*link.RoundTrip.Seconds() + max(secondsOn(size, link), size/w.rates.Plain)
	}
	return float64(p.old+p.new)/w.rates.diff(way.variant) +
		link.RoundTrip.Seconds() + secondsOn(w.parts.of(way.variant)*size, link) + size/w.rates.Apply
}

// push reports the measurements of a push that used the way to c, and returns its duration in
// seconds.
func (w world) push(c *costs, p pair, way way) float64 {
	took, size := w.takes(p, way), float64(p.new)
	switch {
	case way.compressed:
		c.recordWhole(p.new, int64(size*w.rates.Ratio), true, w.link, seconds(took))
	case way.whole:
		c.recordWhole(p.new, p.new, false, w.link, seconds(took))
	default:
		patch := int64(w.parts.of(way.variant) * size)
		diff := float64(p.old+p.new) / w.rates.diff(way.variant)
		c.recordDiff(way.variant, "kubelet", p.old, p.new, patch, seconds(diff))
		c.recordApply(p.new, patch, w.link, seconds(size/w.rates.Apply))
	}
	return took
}

func (w world) best(p pair) float64 {
	best := math.Inf(1)
	for _, way := range []way{{whole: true}, {whole: true, compressed: true}, {variant: delta.Fast},
		{variant: delta.Small}} {
		best = min(best, w.takes(p, way))
	}
	return best
}

// unnoticed is a difference that no user notices, in seconds.
const unnoticed = 0.1

// For every link, host and node: after a few pushes the chosen way is hardly ever slower than the
// best one, and the choice of the first push was not much slower.
func TestTheWayTakenIsNearlyTheBest(t *testing.T) {
	kubelet := parts{Fast: 0.0017, Small: 0.0005}
	for name, w := range map[string]world{
		"as measured": {rates: rates{Fast: 540e6, Small: 430e6, Apply: 330e6, Plain: 250e6, Compress: 190e6,
			Ratio: 0.3}, parts: kubelet},
		"a fast host": {rates: rates{Fast: 2e9, Small: 1.5e9, Apply: 300e6, Plain: 500e6, Compress: 600e6, Ratio: 0.3},
			parts: kubelet},
		"a slow node": {rates: rates{Fast: 1e9, Small: 800e6, Apply: 80e6, Plain: 90e6, Compress: 80e6, Ratio: 0.3},
			parts: kubelet},
		"a slow host": {rates: rates{Fast: 200e6, Small: 150e6, Apply: 200e6, Plain: 120e6, Compress: 90e6, Ratio: 0.3},
			parts: kubelet},
		"versions": {rates: rates{Fast: 300e6, Small: 280e6, Apply: 300e6, Plain: 250e6, Compress: 190e6,
			Ratio: 0.36}, parts: parts{Fast: 0.03, Small: 0.016}},
	} {
		for megabytes := 0.1; megabytes < 5000; megabytes *= 1.3 {
			w.link = reading(megabytes, time.Duration(5e6/megabytes)*time.Nanosecond)
			t.Run(fmt.Sprintf("%s/%.1f MB per s", name, megabytes), func(t *testing.T) {
				c, best := &costs{}, w.best(kubelets)
				push := func() float64 {
					way := c.of("kubelet").choose(kubelets, w.link, none)
					c.decay(way)
					return w.push(c, kubelets, way)
				}
				if first := push(); first > 2*best+unnoticed {
					t.Errorf("the first push takes %.2f s and not %.2f", first, best)
				}
				for range 5 {
					push()
				}
				const pushes = 30
				sum := 0.0
				for range pushes {
					sum += push()
				}
				if sum/pushes > 1.1*best+unnoticed {
					t.Errorf("pushes take %.2f s and not %.2f", sum/pushes, best)
				}
			})
		}
	}
}

func TestAPatchThatIsThereCostsNothing(t *testing.T) {
	w := kubelet().of("kubelet").choose(kubelets, reading(0.2, 80*time.Millisecond), onlyFast)
	if w.whole || w.variant != delta.Small { // 0.5 s more on the link, 0.4 s to make it
		t.Errorf("on a telephone: %s", w)
	}
	w = kubelet().of("kubelet").choose(kubelets, reading(110, 0), onlyFast)
	if w.whole || w.variant != delta.Fast {
		t.Errorf("on a gigabit: %s", w)
	}
}

func TestALargePatchOnASlowLinkIsMadeSmaller(t *testing.T) {
	c := kubelet().of("kubelet")
	containerds := pair{39_000_000, 39_000_000}
	if !c.worthSmall(containerds, 1_680_000, reading(1, 50*time.Millisecond)) {
		t.Error("1 s on the link for 0.2 s of work")
	}
	if c.worthSmall(kubelets, 230_000, reading(1, 50*time.Millisecond)) {
		t.Error("0.17 s on the link for 0.4 s of work")
	}
	if c.worthSmall(containerds, 1_680_000, node.Reading{}) {
		t.Error("on a link that nobody knows")
	}
}

func TestMeasurementsChangeTheEstimate(t *testing.T) {
	c := &costs{}
	before := c.of("a").rates.diff(delta.Fast)
	c.recordDiff(delta.Fast, "a", 1000, 1000, 100, time.Second)
	seen := c.of("a")
	if after := seen.rates.diff(delta.Fast); after >= before || seen.parts.of(delta.Fast) != largestPart {
		t.Errorf("%v, then %v", before, after)
	}
	if seen.rates.diff(delta.Small) >= seen.rates.diff(delta.Fast) ||
		seen.parts.of(delta.Small) >= seen.parts.of(delta.Fast) {
		t.Error("what was never made does not go by its sister")
	}
}

// The patch sizes of a program predict its next patch better than those of another program.
func TestProgramsDiffer(t *testing.T) {
	c := &costs{}
	c.recordDiff(delta.Fast, "kubelet", 1e6, 1e6, 1000, time.Second)
	c.recordDiff(delta.Fast, "containerd", 1e6, 1e6, 20_000, time.Second)
	switch {
	case c.of("kubelet").parts.of(delta.Fast) != 0.001:
		t.Errorf(`c.of("kubelet").parts.of(delta.Fast) is %v, want 0.001`, c.of("kubelet").parts.of(delta.Fast))
	case c.of("containerd").parts.of(delta.Fast) != 0.02:
		t.Errorf(`c.of("containerd").parts.of(delta.Fast) is %v, want 0.02`, c.of("containerd").parts.of(delta.Fast))
	}
	if other := c.of("kube-proxy").parts.of(delta.Fast); other <= 0.001 || other >= 0.02 {
		t.Errorf("one nobody saw yet: %v", other)
	}
	for i := range 3 * filesKnown {
		c.recordDiff(delta.Fast, fmt.Sprint(i), 1e6, 1e6, 5000, time.Second)
		c.recordDiff(delta.Fast, "kubelet", 1e6, 1e6, 1000, time.Second)
	}
	switch {
	case len(c.files) != filesKnown:
		t.Errorf("c.files has %d elements, want %d: %v", len(c.files), filesKnown, c.files)
	case len(c.order) != filesKnown:
		t.Errorf("c.order has %d elements, want %d: %v", len(c.order), filesKnown, c.order)
	case c.of("kubelet").parts.of(delta.Fast) != 0.001:
		t.Errorf(`c.of("kubelet").parts.of(delta.Fast) is %v, want 0.001`, c.of("kubelet").parts.of(delta.Fast))
	}
}

// If the link limited the time of a transfer, the rates of host and node stay unchanged.
func TestASlowLinkIsNoSlowNode(t *testing.T) {
	c := kubelet()
	before := c.rates
	slow := reading(1, 0)
	c.recordWhole(kubeletSize, kubeletSize, false, slow, seconds(84))
	c.recordWhole(kubeletSize, 25e6, true, slow, seconds(26))
	c.recordApply(kubeletSize, 145_000, slow, 400*time.Millisecond)
	switch {
	case c.rates.Plain != before.Plain:
		t.Errorf("c.rates.Plain is %v, want %v", c.rates.Plain, before.Plain)
	case c.rates.Compress != before.Compress:
		t.Errorf("c.rates.Compress is %v, want %v", c.rates.Compress, before.Compress)
	case c.rates.Apply != before.Apply:
		t.Errorf("c.rates.Apply is %v, want %v", c.rates.Apply, before.Apply)
	}
}

func TestABusyHostIsForgotten(t *testing.T) {
	c, link := &costs{}, reading(20, time.Millisecond)
	c.recordDiff(delta.Fast, "kubelet", kubeletSize, kubeletSize, 230_000, 20*time.Second)
	if w := c.of("kubelet").choose(kubelets, link, none); !w.whole {
		t.Fatalf("%s on a host that takes 20 s to compare", w)
	}
	for range 20 {
		w := c.of("kubelet").choose(kubelets, link, none)
		if !w.whole {
			return
		}
		c.decay(w)
	}
	t.Error("whole files for ever")
}

func TestCostsOutliveARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.json")
	(&costs{}).load(path) // the file is missing
	c := kubelet()
	c.save(path)
	next := &costs{}
	next.load(path)
	switch {
	case next.rates != c.rates:
		t.Errorf("next.rates is %v, want %v", next.rates, c.rates)
	case next.parts != c.parts:
		t.Errorf("next.parts is %v, want %v", next.parts, c.parts)
	case next.files["kubelet"] != c.files["kubelet"]:
		t.Errorf(`next.files["kubelet"] is %v, want %v`, next.files["kubelet"], c.files["kubelet"])
	case len(next.order) != 1:
		t.Errorf("next.order has %d elements, want 1: %v", len(next.order), next.order)
	}
	for _, nonsense := range []string{
		"", "{", `{"rates":{"fast":-1,"plain":-1}}`, `{"fast":{"rate":1,"part":0.01}}`,
		`{"files":[{"name":"kubelet","fast":-2}]}`,
	} {
		if err := os.WriteFile(path, []byte(nonsense), 0o600); err != nil {
			t.Fatal(err)
		}
		none := &costs{}
		none.load(path)
		if none.rates != (rates{}) || none.of("kubelet").parts.of(delta.Fast) != assumedFastPart {
			t.Errorf("%s was believed: %+v", nonsense, none)
		}
	}
}

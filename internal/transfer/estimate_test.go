package transfer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/delta"
	"github.com/swdt-dev/swdt/internal/node"
)

func reading(megabytes float64, roundTrip time.Duration) node.Reading {
	return node.Reading{BytesPerSecond: megabytes * 1e6, RoundTrip: roundTrip}
}

func none(delta.Variant) bool { return false }

// kubelet is a host that has made patches of kubelets, and nodes that took them.
func kubelet() *costs {
	c := &costs{}
	c.saw(delta.Fast, 83_500_000, 83_500_000, 230_000, 250*time.Millisecond)
	c.saw(delta.Small, 83_500_000, 83_500_000, 95_000, 450*time.Millisecond)
	c.sawCompress(83_500_000, 25_700_000, 400*time.Millisecond)
	return c
}

func TestTheWayDependsOnTheLink(t *testing.T) {
	for name, c := range map[string]struct {
		link node.Reading
		want string
	}{
		"memory":           {reading(2000, 100*time.Microsecond), "whole"},
		"ten gigabit":      {reading(1000, 200*time.Microsecond), "whole"},
		"gigabit":          {reading(110, 300*time.Microsecond), "whole"}, // 0.41 s against 0.51 s
		"a Windows sshd":   {reading(38, time.Millisecond), "fast"},
		"wireless":         {reading(10, 5*time.Millisecond), "fast"},
		"home, uploading":  {reading(1, 50*time.Millisecond), "fast"},
		"a telephone":      {reading(0.2, 80*time.Millisecond), "small"},
		"nobody knows yet": {node.Reading{}, "whole"},
	} {
		w := kubelet().choose(83_500_000, 83_500_000, c.link, none)
		got := w.variant.String()
		if w.whole {
			got = "whole"
		}
		if got != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got, w, c.want)
		}
	}
}

func TestAPatchThatIsThereCostsNothing(t *testing.T) {
	link := reading(0.2, 80*time.Millisecond)
	w := kubelet().choose(83_500_000, 83_500_000, link, func(v delta.Variant) bool { return v == delta.Fast })
	if w.whole || w.variant != delta.Small { // 0.7 s more on the link, 0.45 s to make it
		t.Errorf("on a telephone: %s", w)
	}
	w = kubelet().choose(83_500_000, 83_500_000, reading(110, 0), func(v delta.Variant) bool { return v == delta.Fast })
	if w.whole || w.variant != delta.Fast {
		t.Errorf("on a gigabit: %s", w)
	}
}

func TestALargePatchOnASlowLinkIsMadeSmaller(t *testing.T) {
	c := kubelet()
	if !c.worthSmall(39_000_000, 39_000_000, 1_680_000, reading(1, 50*time.Millisecond)) {
		t.Error("0.7 s on the link for 0.2 s of work")
	}
	if c.worthSmall(83_500_000, 83_500_000, 230_000, reading(1, 50*time.Millisecond)) {
		t.Error("0.1 s on the link for 0.45 s of work")
	}
	if c.worthSmall(39_000_000, 39_000_000, 1_680_000, node.Reading{}) {
		t.Error("on a link that nobody knows")
	}
}

func TestWhatIsSeenCounts(t *testing.T) {
	c := &costs{}
	before := c.of(delta.Fast)
	c.saw(delta.Fast, 1000, 1000, 100, time.Second)
	after := c.of(delta.Fast)
	if after.Rate >= before.Rate || after.Part != largestPart {
		t.Errorf("%+v", after)
	}
	if small := c.of(delta.Small); small.Rate >= after.Rate || small.Part >= after.Part {
		t.Errorf("what was never made goes by its sister: %+v", small)
	}
}

func TestABusyHostIsForgotten(t *testing.T) {
	c, link := &costs{}, reading(40, time.Millisecond)
	c.saw(delta.Fast, 83_500_000, 83_500_000, 230_000, 20*time.Second)
	if w := c.choose(83_500_000, 83_500_000, link, none); !w.whole {
		t.Fatalf("%s on a host that takes 20 s to compare", w)
	}
	for range 20 {
		if w := c.choose(83_500_000, 83_500_000, link, none); !w.whole {
			return
		}
	}
	t.Error("whole files for ever")
}

func TestCostsOutliveARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.json")
	(&costs{}).load(path) // nothing there
	c := kubelet()
	c.save(path)
	next := &costs{}
	next.load(path)
	if next.of(delta.Small) != c.of(delta.Small) || next.of(delta.Fast) != c.of(delta.Fast) || next.compress != c.compress || next.ratio != c.ratio {
		t.Errorf("%+v became %+v", c, next)
	}
	for _, nonsense := range []string{"", "{", `{"fast":{"rate":-1,"part":0.1}}`, `{"fast":{"rate":1e6,"part":2}}`, `{"compress":-1}`} {
		if err := os.WriteFile(path, []byte(nonsense), 0o600); err != nil {
			t.Fatal(err)
		}
		none := &costs{}
		none.load(path)
		if none.of(delta.Fast) != assumed(delta.Fast) || none.compress != 0 {
			t.Errorf("%s was believed: %+v", nonsense, none)
		}
	}
}

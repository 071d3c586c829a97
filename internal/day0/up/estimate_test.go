package up

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/ui"
)

// memory has what the runs of a test leave on the machine.
type memory struct{ records, times string }

func newMemory(t *testing.T) memory {
	t.Helper()
	return memory{t.TempDir(), filepath.Join(t.TempDir(), "times.json")}
}

// run runs one stage in the time took, as one run of a command. It returns the time in seconds that was
// expected at the beginning.
func (m memory) run(t *testing.T, command string, took time.Duration, result done, err error,
	during func(ui.Reporter)) float64 {
	t.Helper()
	story := ui.NewStory(&bytes.Buffer{}, ui.StoryOptions{})
	defer story.End()
	board := story.NewBoard("dev")
	doc := config.ClusterDocument{Cluster: v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "dev"}}}
	w, failed := begin(command, doc, nil, Options{
		Records: m.records, Times: earlier.At(m.times), Board: board, Reporter: board.Reporter,
	})
	if failed != nil {
		t.Fatal(failed)
	}
	defer w.notes.close()
	if failed := w.notes.change(func(r *record) { r.Cluster = true }); failed != nil {
		t.Fatal(failed)
	}
	all := []*stage{{kind: Cluster, run: func(_ context.Context, r ui.Reporter) (done, error) {
		if during != nil {
			during(r)
		}
		time.Sleep(took)
		return result, err
	}}}
	stages, ended := w.run(t.Context(), all)
	if !errors.Is(ended, err) {
		t.Fatalf("got %v, want %v", ended, err)
	}
	return stages[0].Before
}

func TestEstimatesOfStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, downloads := newMemory(t), ui.Downloading
		forget := func() {
			n := open(t, m.records)
			if err := n.change(func(r *record) { r.forget("") }); err != nil {
				t.Fatal(err)
			}
			if err := n.close(); err != nil {
				t.Fatal(err)
			}
		}
		broken := errors.New("broken")
		for _, run := range []struct {
			name   string
			took   time.Duration
			result done
			err    error
			during func(ui.Reporter)
			want   float64
			down   bool // the cluster is removed afterwards
		}{
			{"the first one has downloads", 10 * time.Minute, done{changed: true}, nil, downloads, 0, true},
			{"no run without downloads is known", 40 * time.Second, done{changed: true}, nil, nil, 0, true},
			{"the second time", 42 * time.Second, done{changed: true}, nil, nil, 40, true},
			{"a failure", time.Second, done{}, broken, nil, 42, false},
			{"the rest of the failed run", 3 * time.Second, done{changed: true}, nil, nil, 42, false},
			{"nothing to do", 2 * time.Second, done{}, nil, nil, 0, false},
			{"again nothing to do", 2 * time.Second, done{}, nil, nil, 2, false},
			{"a change of what exists", time.Minute, done{changed: true}, nil, nil, 2, false},
			{"again nothing", 2 * time.Second, done{}, nil, nil, 2, true},
			{"from nothing", 44 * time.Second, done{changed: true}, nil, nil, 42, true},
		} {
			if got := m.run(t, "up", run.took, run.result, run.err, run.during); got != run.want {
				t.Errorf("%s: before %v, want %v", run.name, got, run.want)
			}
			if run.down {
				forget()
			}
		}
		if got := m.run(t, "down", time.Second, done{changed: true}, nil, nil); got != 0 {
			t.Errorf("down has the estimate of up: %v", got)
		}
	})
}

// While a stage runs, the estimate is that of the runs like it that took longer.
func TestTheEstimateOfARunningStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		times := earlier.At(m.times)
		times.Remember("up dev: cluster", 40*time.Second)
		times.Remember("up dev: cluster, already done", 2*time.Second)
		times.Remember("up dev: cluster, with downloads", 10*time.Minute)
		times.Remember("up dev: cluster, already done, with downloads", time.Second)
		w := &work{command: "up", notes: open(t, m.records), Options: Options{Times: times},
			cluster: config.ClusterDocument{Cluster: v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "dev"}}}}
		w.notes.record.Stages = map[string]progress{"cluster": succeeded}
		s := &stage{kind: Cluster}
		w.estimate(s)
		var got []time.Duration
		for _, elapsed := range []time.Duration{0, 2 * time.Second, 30 * time.Second, time.Hour} {
			got = append(got, s.before(elapsed, false))
		}
		got = append(got, s.before(2*time.Second, true))
		want := []time.Duration{2 * time.Second, 40 * time.Second, 40 * time.Second, 40 * time.Second, 10 * time.Minute}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestTimeToAReadyNode(t *testing.T) {
	ended := func(s *stage, began, seconds float64) *stage {
		s.result = Stage{Result: "changed", Began: began, Seconds: seconds}
		return s
	}
	control := ended(&stage{kind: Cluster}, 0, 30)
	machine := ended(&stage{kind: Machine, node: "a"}, 0, 20)
	first := ended(&stage{kind: Join, node: "a", needs: []*stage{control, nil, machine}}, 30, 15)
	slow := ended(&stage{kind: Machine, node: "b"}, 0, 50)
	settings := ended(&stage{kind: Setup, node: "b", needs: []*stage{slow}}, 50, 5)
	second := ended(&stage{kind: Join, node: "b", needs: []*stage{control, slow, settings}}, 55, 10)
	failed := &stage{kind: Join, node: "c", needs: []*stage{control}, result: Stage{Result: "failed"}}
	var got []string
	for _, ready := range readyTimes([]*stage{control, machine, first, slow, settings, second, failed}) {
		got = append(got, ready.String())
	}
	want := []string{
		"a Ready after 45.0s: cluster 30.0s, join 15.0s",
		"b Ready after 1m05s: machine 50.0s, setup 5.0s, join 10.0s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A damaged or hostile file of times changes no stage, and prints nothing.
func TestHostileTimesChangeNoStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, text := range []string{"{", `{"up dev: cluster": {"recent": [1e308, -5, 0]}}`, strings.Repeat("[", 1<<20)} {
			m := newMemory(t)
			plant(t, m.times, text)
			if got := m.run(t, "up", time.Second, done{changed: true}, nil, nil); got != 0 {
				t.Errorf("%.20s: before %v, want 0", text, got)
			}
		}
	})
}

func plant(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

package waves_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/waves"
)

// cluster is a cluster of nodes win-1, win-2, …, each of which takes a minute for a change, or half of that to fail.
type cluster struct {
	mu    sync.Mutex
	begun time.Time
	nodes []rollout.Node
	fails string
	log   []string
	most  int // at once
	now   int
	waits []string
}

func newCluster(count int) (*cluster, []string) {
	c := &cluster{begun: time.Now()}
	var names []string
	for i := range count {
		name := fmt.Sprintf("win-%d", i+1)
		c.nodes = append(c.nodes, rollout.Node{Name: name, Ready: true})
		names = append(names, name)
	}
	return c, names
}

func (c *cluster) options(most string) waves.Options {
	return waves.Options{
		MaxUnavailable: intstr.Parse(most),
		Look: func(context.Context) ([]rollout.Node, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return slices.Clone(c.nodes), nil
		},
		Waits: func(why string) { c.waits = append(c.waits, why) },
	}
}

func (c *cluster) change(ctx context.Context, name string) error {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	c.log = append(c.log, fmt.Sprintf("%s at %s", name, time.Since(c.begun)))
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	took := time.Minute
	if name == c.fails {
		took /= 2
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	if name == c.fails {
		return errors.New("it is broken")
	}
	return nil
}

func (c *cluster) set(name string, change func(*rollout.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.nodes {
		if c.nodes[i].Name == name {
			change(&c.nodes[i])
		}
	}
}

// ends describes the results.
func ends(errs map[string]error) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		var not *waves.NotBegunError
		switch err := errs[name]; {
		case errors.As(err, &not):
			all = append(all, name+" not begun")
		case err != nil:
			all = append(all, name+" "+err.Error())
		default:
			all = append(all, name+" done")
		}
	}
	return all
}

func (c *cluster) began(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(c.log)
	if diff := cmp.Diff(want, c.log); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
}

func TestOneWaveAfterAnother(t *testing.T) {
	for most, want := range map[string][]string{
		"1":   {"win-1 at 0s", "win-2 at 1m0s", "win-3 at 2m0s", "win-4 at 3m0s"},
		"50%": {"win-1 at 0s", "win-2 at 1m0s", "win-3 at 1m0s", "win-4 at 2m0s"}, // the first one alone
	} {
		t.Run(most, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, names := newCluster(4)
				results := waves.Run(t.Context(), names, c.options(most), c.change)
				if diff := cmp.Diff([]string{"win-1 done", "win-2 done", "win-3 done", "win-4 done"}, ends(results)); diff != "" {
					t.Error(diff)
				}
				c.began(t, want...)
			})
		})
	}
}

func TestNoNodeBeginsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, names := newCluster(5)
		c.fails = "win-2"
		results := waves.Run(t.Context(), names, c.options("2"), c.change)
		want := []string{"win-1 done", "win-2 it is broken", "win-3 done", "win-4 not begun", "win-5 not begun"}
		if diff := cmp.Diff(want, ends(results)); diff != "" {
			t.Error(diff)
		}
		if err := results["win-4"].Error(); !strings.Contains(err, "failed on win-2") || !strings.Contains(err, "run the same command again") {
			t.Error(err)
		}
	})
}

func TestACanaryPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, names := newCluster(3)
		options := c.options("3")
		options.Canary = fleetv1.CanaryStep{Nodes: intstr.FromInt32(1), Pause: "10m"}
		waves.Run(t.Context(), names, options, c.change)
		c.began(t, "win-1 at 0s", "win-2 at 11m0s", "win-3 at 11m0s")
		if len(c.waits) == 0 || !strings.Contains(c.waits[0], "canary") {
			t.Errorf("reported: %q", c.waits)
		}
	})
}

// A node that is cordoned or not Ready uses the room of another one, and is not touched itself.
func TestUnavailableNodesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, names := newCluster(3)
		c.set("win-2", func(n *rollout.Node) { n.Cordoned = true })
		go func() {
			time.Sleep(89 * time.Second)
			c.set("win-2", func(n *rollout.Node) { n.Cordoned = false })
		}()
		results := waves.Run(t.Context(), names, c.options("1"), c.change)
		if diff := cmp.Diff([]string{"win-1 done", "win-2 done", "win-3 done"}, ends(results)); diff != "" {
			t.Error(diff)
		}
		c.began(t, "win-1 at 1m30s", "win-2 at 2m30s", "win-3 at 3m30s")
		if diff := cmp.Diff([]string{"cordoned or not Ready: win-2"}, c.waits); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNodesThatStayUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, names := newCluster(3)
		c.set("win-3", func(n *rollout.Node) { n.Ready = false })
		results := waves.Run(t.Context(), names, c.options("2"), c.change)
		want := []string{"win-1 done", "win-2 done", "win-3 not begun"}
		if diff := cmp.Diff(want, ends(results)); diff != "" {
			t.Error(diff)
		}
		if err := results["win-3"].Error(); !strings.Contains(err, "cordoned or not Ready: win-3 after 5m0s") {
			t.Error(err)
		}
	})
}

func TestAnInterruptionWaitsForWhatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, names := newCluster(3)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		results := waves.Run(ctx, names, c.options("1"), c.change)
		if results["win-1"] != nil || !errors.Is(results["win-2"], context.DeadlineExceeded) || !errors.Is(results["win-3"], context.DeadlineExceeded) {
			t.Errorf("%v", ends(results))
		}
		c.began(t, "win-1 at 0s", "win-2 at 1m0s")
	})
}

// A cluster that does not answer for a while delays the nodes that remain, and has no other effect.
func TestALookThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		until time.Duration
		want  []string
	}{
		"for a while": {4 * time.Minute, []string{"win-1 done", "win-2 done", "win-3 done"}},
		"for good":    {time.Hour, []string{"win-1 done", "win-2 not begun", "win-3 not begun"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, names := newCluster(3)
				options, refused := c.options("1"), errors.New("connection refused")
				look := options.Look
				options.Look = func(ctx context.Context) ([]rollout.Node, error) {
					if since := time.Since(c.begun); since >= 30*time.Second && since < test.until {
						return nil, refused
					}
					return look(ctx)
				}
				results := waves.Run(t.Context(), names, options, c.change)
				if diff := cmp.Diff(test.want, ends(results)); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"the nodes cannot be read: connection refused"}, c.waits); diff != "" {
					t.Error(diff)
				}
				if err := results["win-3"]; err != nil && (!errors.Is(err, refused) || time.Since(c.begun) > 7*time.Minute ||
					!strings.Contains(err.Error(), "run the same command again")) {
					t.Errorf("%v after %s", err, time.Since(c.begun))
				}
			})
		})
	}
}

package up_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
)

// TestUpWarnsBeforeItBegins expects the warnings about a machine that exists before the first stage, which fails here.
func TestUpWarnsBeforeItBegins(t *testing.T) {
	const unsupported, overlay = "Calico's project does not support Windows Server 2025", "overlay networks (VXLAN) do not work"
	for name, test := range map[string]struct {
		build, network string
		want           []string
	}{
		"Server 2025 with Calico":          {"26100.33296", "plugin: calico", []string{unsupported}},
		"Server 2025 before October 2025":  {"26100.1742", "plugin: calico", []string{unsupported, overlay}},
		"flannel's overlay":                {"26100.1742", "plugin: flannel", []string{overlay}},
		"Server 2022":                      {"20348.2849", "plugin: calico", nil},
		"Server 2025 with another network": {"26100.1742", "plugin: none", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, inJoin)
			w.control, w.network = "kind: {}", test.network
			w.options.Only = []string{up.Cluster, up.Network, up.Join}
			w.kind.Failing = errors.New("no space left on device")
			facts(func(f *platform.Facts) { f.Build = test.build })(w)
			r := w.up()
			if r.failed != up.Cluster {
				t.Fatalf("it failed in %q: %v", r.failed, r.err)
			}
			for _, words := range []string{unsupported, overlay} {
				if got := strings.Contains(r.text(), "combinations: "+words); got != slices.Contains(test.want, words) {
					t.Errorf("%q is printed: %v\n%s", words, got, r.text())
				}
			}
			for _, change := range r.changes {
				if strings.Contains(change, "service") || strings.Contains(change, "file") {
					t.Errorf("it changed something on the node: %s", change)
				}
			}
		})
	}
}

// TestUpGoesOnWithoutAMachine expects that a machine that does not answer yet does not keep the first stage from its run.
func TestUpGoesOnWithoutAMachine(t *testing.T) {
	w := newWorld(t, inJoin)
	w.control, w.network, w.options.Only = "kind: {}", "plugin: calico", []string{up.Cluster, up.Network, up.Join}
	w.kind.Failing = errors.New("no space left on device")
	w.options.Connect = func(context.Context, config.Document, ui.Reporter) (*node.Node, error) {
		return nil, errors.New("connection refused")
	}
	if r := w.up(); r.failed != up.Cluster || len(r.warnings) > 0 {
		t.Errorf("it failed in %q with %v: %v", r.failed, r.warnings, r.err)
	}
}

// TestOneWarningForEachCombination expects that the join does not repeat what up has said before its first stage.
func TestOneWarningForEachCombination(t *testing.T) {
	w := newWorld(t, inJoin)
	w.containerd = `version: 2.4.2, config: "[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'cimfs'\n"`
	r := w.up()
	if r.err != nil || strings.Count(r.text(), "combinations: Windows crashes") != 1 {
		t.Errorf("%v\n%s", r.err, r.text())
	}
}

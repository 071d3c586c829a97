package kubeletargs_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
)

func TestFlags(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"":                                    {},
		"--v=2 --v=4 --windows-service":       {"v": "4", "windows-service": "true"},
		"--node-labels=a=1 --node-labels b=2": {"node-labels": "a=1,b=2"},
		"--cluster_dns=10.96.0.10 -cluster-dns fd00::a":     {"cluster-dns": "10.96.0.10,fd00::a"},
		"--oom-score-adj -999 --config C:\\k\\c.yaml":       {"oom-score-adj": "-999", "config": `C:\k\c.yaml`},
		"--fail-swap-on --root-dir=":                        {"fail-swap-on": "true", "root-dir": ""},
		"--reserved-memory=0:memory=1Gi --reserved_memory=": {"reserved-memory": ""},
	} {
		flags, stray := kubeletargs.Flags(strings.Fields(line))
		if !maps.Equal(flags, want) || stray != "" {
			t.Errorf("%q has %v, want %v; stray %q", line, flags, want, stray)
		}
	}
	if flags, stray := kubeletargs.Flags([]string{"run", "--v=2", "--", "more"}); stray != "run" || flags["v"] != "2" {
		t.Errorf("%v, stray %q", flags, stray)
	}
}

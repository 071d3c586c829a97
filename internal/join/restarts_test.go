package join_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/host/simulated"
)

// While containerd is down no pod of the node starts or stops.
func TestANewContainerdWithANewConfigurationIsStartedOnce(t *testing.T) {
	l := newLab(t)
	l.mustJoin()
	before := len(l.Machine.Operations())
	l.spec().Containerd.Version = "1.7.13"
	l.spec().Containerd.PauseImage = "example.com/pause:1"
	results := l.mustJoin()
	starts := map[string]int{}
	for _, op := range l.Machine.Operations()[before:] {
		if op.Kind == simulated.OpServiceStart {
			starts[strings.ToLower(op.Target)]++
		}
	}
	if starts["containerd"] != 1 || starts["kubelet"] != 1 {
		t.Errorf("started %v\n%s", starts, table(results))
	}
	if config := l.get(`C:\Program Files\containerd\config.toml`); !strings.Contains(config, "example.com/pause:1") {
		t.Errorf("the configuration is\n%s", config)
	}
	again, err := l.join()
	nothing(t, again, err)
}

// The configuration goes back with the binary.
func TestANewContainerdThatFailsLeavesTheConfigurationAsItWas(t *testing.T) {
	const config = `C:\Program Files\containerd\config.toml`
	l := newLab(t)
	l.mustJoin()
	before := l.get(config)
	l.spec().Containerd.Version, l.spec().Containerd.PauseImage = "1.7.13", "example.com/pause:1"
	l.programs.fault["containerd"] = simulated.CrashAtStart
	if results, err := l.join(); err == nil {
		t.Fatalf("joined with a containerd that crashes\n%s", table(results))
	}
	if l.get(config) != before {
		t.Errorf("the configuration is\n%s", l.get(config))
	}
	if l.pid("containerd") == 0 || l.pid("kubelet") == 0 {
		t.Error("a service does not run")
	}
	l.programs.fault["containerd"] = ""
	l.mustJoin()
	if !strings.Contains(l.get(config), "example.com/pause:1") {
		t.Error("the next join did not bring the configuration")
	}
}

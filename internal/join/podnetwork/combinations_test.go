package podnetwork_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/ui"
)

// warnings is a Reporter that keeps the warnings.
type warnings struct {
	ui.Discard
	mu  sync.Mutex
	all []string
}

func (w *warnings) Warn(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, fmt.Sprintf(format, args...))
}

// TestInstallWarnsOfWindowsNodes expects a warning for the Windows nodes of the cluster that are known not to work with
// the network, and none for others. The installation goes on.
func TestInstallWarnsOfWindowsNodes(t *testing.T) {
	w := newProxyWorld(t)
	for name, build := range map[string]string{"old-2025": "26100.1742", "new-2025": "26100.33296", "w2022": "20348.5499"} {
		w.plant(`apiVersion: v1
kind: Node
metadata: {name: ` + name + `, labels: {kubernetes.io/os: windows}}
status: {nodeInfo: {kernelVersion: 10.0.` + build + `, osImage: Windows Server Datacenter}}
`)
	}
	story := &warnings{}
	report, err := podnetwork.Install(t.Context(), w.c, w.o, story)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Problems) != 1 || !strings.HasPrefix(report.Problems[0].Evidence, "node old-2025: Windows build 26100.1742") {
		t.Errorf("%+v", report.Problems)
	}
	if len(story.all) != 1 || !strings.HasPrefix(story.all[0], "combinations: overlay networks (VXLAN) do not work") {
		t.Errorf("%q", story.all)
	}
}

package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// If several nodes fail, each is named once on its line. In JSON the error is beside the
// name and does not repeat it.
func TestEveryErrorNamesItsNodeOnce(t *testing.T) {
	gone := func(_ *simulated.Machine, unplug func()) { unplug() }
	for name, c := range map[string]struct {
		spoil func(m *simulated.Machine, unplug func())
		args  []string
		says  string
	}{
		"status unreachable": {gone, []string{"status"}, "connection refused"},
		"push unreachable":   {gone, []string{"push"}, "connection refused"},
		"setup unreachable":  {gone, []string{"setup"}, "connection refused"},
		"join unreachable":   {gone, []string{"join", "--preflight"}, "connection refused"},
		"trace unreachable":  {gone, []string{"trace", "on"}, "connection refused"},
		"push a component fails": {func(m *simulated.Machine, _ func()) { m.OnOperation(diskFullAtStaging) },
			[]string{"push"}, "not enough space"},
		"push rolled back": {func(m *simulated.Machine, _ func()) { m.OnOperation(startFailsOnce()) },
			[]string{"push"}, "previous binaries"},
		"rollback nothing was kept": {func(*simulated.Machine, func()) {}, []string{"rollback", "kubelet"},
			"previous"},
		"trace a level and no start": {func(m *simulated.Machine, _ func()) { m.OnOperation(startFailsOnce()) },
			[]string{"trace", "on", "kubelet"}, "did not come up"},
	} {
		t.Run(name, func(t *testing.T) {
			w, machines, unplugs := diagnosed(t, "n8", "n9")
			w.build("2.0.0")
			for _, node := range []string{"n8", "n9"} {
				c.spoil(machines[node], unplugs[node])
			}
			story := &lines{}
			code, stdout := w.swdt(t.Context(), story, append(c.args, "-o", "json")...)
			_, failures, found := strings.Cut(story.String(), "2 of 2 nodes failed:\n")
			if code == 0 || !found {
				t.Fatalf("exit code %d\n%s", code, story.String())
			}
			var report struct {
				Nodes []struct{ Name, Error string }
			}
			if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Nodes) != 2 {
				t.Fatalf("%v\n%s", err, stdout)
			}
			for _, node := range report.Nodes {
				if node.Error == "" || strings.Contains(node.Error, node.Name+": ") {
					t.Errorf("JSON says of %s %q", node.Name, node.Error)
				}
				first, _, _ := strings.Cut(node.Error, "\n")
				switch {
				case !strings.Contains(failures, "  "+node.Name+": "+first):
					t.Errorf("failures lacks %q:\n%s", "  "+node.Name+": "+first, failures)
				case !strings.Contains(first, c.says):
					t.Errorf("first lacks %q:\n%s", c.says, first)
				case strings.Count(failures, node.Name+": ") != 1:
					t.Errorf("strings.Count(failures, node.Name+\": \") = %v, want 1; stderr says %q, not %q once",
						strings.Count(failures, node.Name+": "), failures, first)
				}
			}
		})
	}
}

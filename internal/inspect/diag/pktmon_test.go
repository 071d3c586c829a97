package diag

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform/imitation/pktmonexe"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

// Windows Server 2019 lists pktmon's components with `pktmon comp list`, later builds with `pktmon list`.
func TestComponentsOfEveryBuild(t *testing.T) {
	for build, want := range map[string]string{"17763": "pktmon comp list", "20348": "pktmon list"} {
		n := nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Minimal})
		n.Put(pktmonexe.BuildFile, []byte(build))
		v := visiting(t, n.Node)
		commands := Commands()
		i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == "pktmon-components" })
		records, _ := v.collect(t.Context(), []Collector{commands[i].collector()})
		files := records[0].Files
		if records[0].Result != Done || len(files) != 1 || files[0].From != want {
			t.Errorf("build %s: %+v", build, records)
			continue
		}
		text, err := os.ReadFile(filepath.Join(v.folder.root, filepath.FromSlash(files[0].Path)))
		if err != nil || !strings.Contains(string(text), "Id") {
			t.Errorf("build %s: %v\n%s", build, err, text)
		}
	}
}

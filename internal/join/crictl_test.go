package join_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/join"
)

// crictl and its configuration come and go together.
func TestCrictlComesWithItsConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		const program = `C:\Program Files\containerd\bin\crictl.exe`
		there := func() (exe, yaml bool) {
			for path := range l.Machine.Snapshot(`C:\`) {
				exe = exe || strings.EqualFold(path, program)
				if strings.HasSuffix(strings.ToLower(path), `\.crictl\crictl.yaml`) {
					yaml = true
					want := "runtime-endpoint: npipe:////./pipe/containerd-containerd\n"
					if !strings.HasPrefix(l.get(path), want) {
						t.Errorf("%s has %q", path, l.get(path))
					}
				}
			}
			return exe, yaml
		}
		before := l.state()
		l.mustJoin()
		if exe, yaml := there(); exe || yaml {
			t.Errorf("without the field: program %v, configuration %v", exe, yaml)
		}
		l.spec().Containerd.CrictlVersion = "1.36.0"
		results := l.mustJoin()
		if exe, yaml := there(); !exe || !yaml || !slices.Equal(changed(results), []string{"containerd files", "crictl config"}) {
			t.Errorf("with the field: program %v, configuration %v\n%s", exe, yaml, table(results))
		}
		again, err := l.join()
		nothing(t, again, err)
		l.spec().Containerd.CrictlVersion = "" // the program stays until a reset, so its configuration does too
		again, err = l.join()
		nothing(t, again, err)
		if results, err := l.resetWith(join.ResetOptions{}); err != nil {
			t.Fatalf("reset: %v\n%s", err, table(results))
		}
		l.isAsBefore(before)
	})
}

// Earlier versions wrote the configuration alone.
func TestAConfigurationWithoutCrictlGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		const path = `C:\Users\tester\.crictl\crictl.yaml`
		record := `C:\ProgramData\swdt\join.json`
		text := strings.Replace(l.get(record), `"files": [`, `"files": [{"path": "`+strings.ReplaceAll(path, `\`, `\\`)+
			`", "step": "crictl config"},`, 1)
		l.put(record, text)
		l.put(path, "runtime-endpoint: npipe:////./pipe/containerd-containerd\n")
		results := l.mustJoin()
		if !slices.Equal(changed(results), []string{"crictl config"}) || l.get(path) != "" {
			t.Errorf("changed %v, the file has %q", changed(results), l.get(path))
		}
	})
}

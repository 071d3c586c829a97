package kubesettings_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/sandbox/wine/winetest"
	"github.com/swdt-dev/swdt/internal/testing/cases"
)

// realProgram is a published program of Kubernetes, built for Windows by lab/build.sh.
type realProgram struct {
	program kubesettings.Program
	version string
	minor   int
}

func (r realProgram) file() string { return fmt.Sprintf("%s-%s.exe", r.program, r.version) }

// sampled is the number of gates that are tried without SWDT_EVERY_POINT.
const sampled = 6

// Real programs know the flags that the table has, and take or refuse each feature gate of any version as it says: the
// default's opposite, which a locked gate refuses.
func TestRealProgramsAgreeWithTheTable(t *testing.T) {
	if testing.Short() {
		t.Skip("runs kubelet and kube-proxy under Wine")
	}
	folder := filepath.Join(labFolder(t), "node")
	table := load(t)
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("%s is missing: run lab/build.sh node older", folder)
	}
	prefix := winetest.Prepare(t)
	for _, r := range []realProgram{
		{kubesettings.Kubelet, "1.35.4", 35}, {kubesettings.Kubelet, "1.36.3", 36}, {kubesettings.KubeProxy, "1.36.3", 36},
	} {
		t.Run(r.file(), func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(folder, r.file())); err != nil {
				t.Skipf("%s is missing: run lab/build.sh node older", r.file())
			}
			winetest.Install(t, filepath.Join(folder, r.file()), filepath.Join(prefix.DriveC(), r.file()))
			t.Run("flags", func(t *testing.T) { r.flags(t, prefix, table) })
			t.Run("gates", func(t *testing.T) { r.gates(t, prefix, table) })
			t.Run("some flags", func(t *testing.T) { r.someFlags(t, prefix, table) })
		})
	}
}

// flags compares the flags of --help with the table.
func (r realProgram) flags(t *testing.T, prefix *wine.Prefix, table *kubesettings.Table) {
	help := r.run(t, prefix, "--help")
	var got []string
	for _, found := range regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z][a-z0-9-]*)`).FindAllStringSubmatch(help, -1) {
		if len(found[1]) > 1 { // -v is --v too
			got = append(got, found[1])
		}
	}
	slices.Sort(got)
	want := slices.DeleteFunc(table.Flags(r.program, r.minor), func(name string) bool {
		// kubelet's help has its deprecated flags, and that of kube-proxy, as pflag's, has not.
		return len(name) == 1 || r.program == kubesettings.KubeProxy && table.Flag(r.program, name, r.minor).Deprecated
	})
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("-table +%s:\n%s", r.file(), diff)
	}
}

func (r realProgram) gates(t *testing.T, prefix *wine.Prefix, table *kubesettings.Table) {
	differences := 0
	tried := cases.Of(t, table.Gates(), sampled)
	for _, name := range tried {
		g := table.Gate(name, r.minor)
		out := r.run(t, prefix, fmt.Sprintf("--feature-gates=%s=%t", name, !g.On))
		want := "taken"
		switch {
		case !g.Known:
			want = "unrecognized feature gate: " + name
		case g.Locked:
			want = fmt.Sprintf("cannot set feature gate %s to %t, feature is locked to %t", name, !g.On, g.On)
		}
		if got := answer(out, name); got != want {
			differences++
			t.Errorf("%s=%t: %q, want %q", name, !g.On, got, want)
		}
	}
	t.Logf("%d gates were tried, %d differ", len(tried), differences)
}

// answer returns what a program says about a gate, or "taken".
func answer(out, name string) string {
	pattern := regexp.MustCompile(`unrecognized feature gate: ` + name + `\b|cannot set feature gate ` + name +
		` to (true|false), feature is locked to (true|false)`)
	if found := pattern.FindString(out); found != "" {
		return found
	}
	return "taken"
}

// someFlags tries each flag that any version lacks, and those that flags cannot see.
func (r realProgram) someFlags(t *testing.T, prefix *wine.Prefix, table *kubesettings.Table) {
	for _, name := range append(table.Flags(r.program, table.Oldest()), "no-such-flag") {
		hidden := r.program == kubesettings.KubeProxy && table.Flag(r.program, name, r.minor).Deprecated
		if table.Flag(r.program, name, table.Newest()).Known && !hidden {
			continue
		}
		refused := strings.Contains(r.run(t, prefix, "--"+name+"=x"), "unknown flag: --"+name)
		if known := table.Flag(r.program, name, r.minor).Known; known == refused {
			t.Errorf("--%s: known to the table is %t, refused is %t", name, known, refused)
		}
	}
}

// run returns what a program prints with an argument. It ends soon in each case: kube-proxy only writes its
// configuration, and kubelet looks for a configuration that does not exist, after it has set the gates of its flags.
func (r realProgram) run(t *testing.T, prefix *wine.Prefix, argument string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	last := `--config=C:\none.yaml`
	if r.program == kubesettings.KubeProxy {
		last = `--write-config-to=C:\written.yaml`
	}
	out, err := prefix.Command(ctx, `C:\`+r.file(), argument, last).CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s: %v", argument, err)
	}
	return string(out)
}

func labFolder(t *testing.T) string {
	t.Helper()
	if lab := os.Getenv("SWDT_LAB"); lab != "" {
		return lab
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "swdt", "lab")
}

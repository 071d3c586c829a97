package upgradecheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const (
	ruleConfigVersion = "containerd-config-version"
	ruleConfigKey     = "containerd-config-key"
)

// newestContainerd is the newest minor version of containerd 2 that the rules know.
const newestContainerd = 4

// The plugins with the settings of CRI.
const (
	criBefore2 = "io.containerd.grpc.v1.cri"
	criImages  = "io.containerd.cri.v1.images"
	criRuntime = "io.containerd.cri.v1.runtime"
)

// defaultBinDir is the folder of CNI plugins that containerd uses on Windows without a setting.
const defaultBinDir = `C:\Program Files\containerd\cni\bin`

// containerd holds configurations of containerd against the target's version, or if it stays, against its own. The facts
// are from containerd's source: internal/cri/config, plugins/cri, docs/containerd-2.0.md and RELEASES.md of v2.4.2.
func (c *checking) containerd() {
	for _, file := range c.facts.Containerd {
		reads := c.target.Containerd
		if reads == nil {
			reads = parsed(file.Version)
		}
		if reads == nil {
			continue
		}
		var config map[string]any
		if err := toml.Unmarshal(withoutMark(file.Text), &config); err != nil {
			continue // the Reader takes no such file
		}
		(&containerdRules{checking: c, file: file, reads: reads, config: config}).all()
	}
}

type containerdRules struct {
	*checking
	file   ContainerdFile
	reads  *version.Version // the containerd that will read the file
	config map[string]any
}

func (r *containerdRules) all() {
	written := 1 // the version of a file without one
	if stated, ok := r.config["version"].(int64); ok {
		written = int(stated)
	}
	highest := highestConfig(r.reads)
	if written > highest {
		r.report(ruleConfigVersion, Exits, finding.Error, "version", fmt.Sprintf("version = %d", written),
			fmt.Sprintf("containerd %s ends: it reads configurations up to version %d", r.reads, highest),
			fmt.Sprintf("write a configuration of version %d, or install a newer containerd", highest))
		return
	}
	if written < 2 && !r.reads.LessThan(version.MajorMinor(2, 0)) {
		r.report(ruleConfigVersion, Deprecated, finding.Info, "version", fmt.Sprintf("version = %d", written),
			"containerd migrates a configuration of version 1 at each start", "run `containerd.exe config migrate`")
	}
	r.binDirs(written)
	r.registry()
	r.removedKeys()
	r.snapshotters(written)
}

// highestConfig returns the highest version of configurations that a containerd reads.
func highestConfig(containerd *version.Version) int {
	switch {
	case containerd.LessThan(version.MajorMinor(2, 0)):
		return 2
	case containerd.LessThan(version.MajorMinor(2, 3)):
		return 3
	}
	return 4
}

// binDirs finds bin_dir of a version 3 file, which containerd 2.4 ignores; that of a version 2 file is migrated.
func (r *containerdRules) binDirs(written int) {
	cni := table(r.config, "plugins", criRuntime, "cni")
	folder, _ := cni["bin_dir"].(string)
	if written < 3 || folder == "" {
		return
	}
	list, _ := cni["bin_dirs"].([]any)
	switch since := version.MajorMinor(2, 4); {
	case !r.reads.LessThan(since) && !strings.EqualFold(folder, defaultBinDir):
		r.report(ruleConfigKey, Ignored, finding.Error, "bin_dir", "cni.bin_dir = "+folder,
			fmt.Sprintf("containerd %s ignores cni.bin_dir since 2.4, and looks for CNI plugins in %s: pods get no network", r.reads,
				defaultBinDir), "write bin_dirs = ["+fmt.Sprintf("%q", folder)+"] instead")
	case r.reads.LessThan(since) && !r.reads.LessThan(version.MajorMinor(2, 1)) && len(list) > 0 &&
		!(len(list) == 1 && list[0] == folder):
		r.report(ruleConfigKey, Exits, finding.Error, "bin_dir", "cni.bin_dir beside cni.bin_dirs",
			fmt.Sprintf("containerd %s refuses cni.bin_dir beside other cni.bin_dirs", r.reads), "remove bin_dir")
	}
}

// registry finds mirrors beside config_path, with which the image plugin does not load, and the settings that go.
func (r *containerdRules) registry() {
	for _, plugin := range []string{criBefore2, criImages} {
		registry := table(r.config, "plugins", plugin, "registry")
		folder, _ := registry["config_path"].(string)
		var old []string
		for _, key := range []string{"mirrors", "configs", "auths"} {
			if settings, ok := registry[key].(map[string]any); ok && len(settings) > 0 {
				old = append(old, key)
			}
		}
		switch {
		case folder != "" && slices.Contains(old, "mirrors"):
			r.report(ruleConfigKey, Exits, finding.Error, "mirrors", "registry.mirrors beside registry.config_path",
				"containerd's image plugin does not load: registry.mirrors and registry.config_path exclude each other",
				"move the mirrors into hosts.toml files below config_path")
		case len(old) > 0 && !r.reads.LessThan(version.MajorMinor(2, 0)):
			r.report(ruleConfigKey, Deprecated, finding.Info, old[0], "registry."+strings.Join(old, ", registry."),
				"containerd 2.7 will not read registry.mirrors, configs and auths", "move them into hosts.toml files below config_path")
		}
	}
}

// removedKeys finds keys of the CRI plugin that a version removed, and that it ignores.
func (r *containerdRules) removedKeys() {
	cri := table(r.config, "plugins", criBefore2)
	inner := table(cri, "containerd")
	for _, removed := range []struct {
		table map[string]any
		keys  []string
		since *version.Version
	}{
		{cri, []string{"systemd_cgroup"}, version.MajorMinor(2, 0)},
		{inner, []string{"untrusted_workload_runtime", "default_runtime"}, version.MajorMinor(2, 0)},
		{table(r.config, "plugins", criRuntime), []string{"enable_cdi"}, version.MajorMinor(2, 4)},
	} {
		for _, key := range removed.keys {
			if value, ok := removed.table[key]; ok && !r.reads.LessThan(removed.since) && !isZero(value) {
				r.report(ruleConfigKey, Ignored, finding.Warning, key, key,
					fmt.Sprintf("containerd %s ignores %s since %s", r.reads, key, removed.since), "remove it")
			}
		}
	}
	runtimes := table(inner, "runtimes")
	for _, name := range slices.Sorted(maps.Keys(runtimes)) {
		for _, key := range []string{"runtime_engine", "runtime_root"} {
			if value, ok := table(runtimes, name)[key]; ok && !isZero(value) && !r.reads.LessThan(version.MajorMinor(2, 0)) {
				r.report(ruleConfigKey, Ignored, finding.Warning, key, "runtimes."+name+"."+key,
					fmt.Sprintf("containerd %s ignores %s since 2.0", r.reads, key), "remove it")
			}
		}
	}
}

// snapshotters finds a runtime's own snapshotter in a version 2 file: containerd 2.0 to 2.4.2 loses it for the pulls of
// images while it migrates the file (it reads the key snapshot, plugins/cri/images/plugin.go).
func (r *containerdRules) snapshotters(written int) {
	runtimes := table(r.config, "plugins", criBefore2, "containerd", "runtimes")
	for _, name := range slices.Sorted(maps.Keys(runtimes)) {
		own, _ := table(runtimes, name)["snapshotter"].(string)
		if own == "" || written > 2 || r.reads.LessThan(version.MajorMinor(2, 0)) {
			continue
		}
		r.report(ruleConfigKey, Ignored, finding.Warning, "snapshotter", "runtimes."+name+".snapshotter = "+own,
			fmt.Sprintf("containerd %s does not use the snapshotter of the runtime %s for pulls", r.reads, name),
			"write a configuration of version 3 with runtime_platforms in the images plugin")
	}
}

func isZero(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case bool:
		return !value
	case int64:
		return value == 0
	case []any:
		return len(value) == 0
	case map[string]any: // the defaults of containerd 1.7 have tables of empty values
		for _, inner := range value {
			if !isZero(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// report adds a finding about a key.
func (r *containerdRules) report(rule string, effect Effect, s finding.Severity, key, evidence, what, remedy string) {
	place := r.file.Place
	if place.File != "" {
		place.Line = lineOf(r.file.Text, key)
	}
	r.add(Finding{Rule: rule, Effect: effect, Places: []Place{place},
		Source:  "https://github.com/containerd/containerd/blob/v2.4.2/RELEASES.md",
		Finding: finding.New(evidence, "%s", what).As(s).Remedied("%s", remedy)})
}

// lineOf returns the first line that sets a key or opens its table, from 1; 0: none.
func lineOf(text []byte, key string) int {
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if name, _, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == key || strings.HasPrefix(line, "[") &&
			(strings.Contains(line, "."+key+".") || strings.Contains(line, "."+key+"]")) {
			return i + 1
		}
	}
	return 0
}

// table returns a table inside a table; nil if there is none.
func table(t map[string]any, path ...string) map[string]any {
	for _, key := range path {
		t, _ = t[key].(map[string]any)
	}
	return t
}

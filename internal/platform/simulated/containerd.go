package simulated

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// defaultConfigs has the output of "containerd config default" of real containerds, one file for
// each generation.
//
//go:embed containerd/default-*.toml
var defaultConfigs embed.FS

// containerdConfigPath is the path of containerd's configuration: containerd/containerd, defaults/defaults_windows.go.
const containerdConfigPath = `C:\Program Files\containerd\config.toml`

// containerdGeneration describes the containerds from version major.minor on, up to the next
// generation.
type containerdGeneration struct {
	major, minor int
	file         string
	newest       int // the newest configuration version that these containerds read
}

func containerdGenerations() []containerdGeneration {
	return []containerdGeneration{
		{2, 3, "2.4.2", 4}, {2, 1, "2.2.0", 3}, {2, 0, "2.0.0", 3}, {1, 7, "1.7.12", 2}, {0, 0, "1.6.27", 2},
	}
}

// generation returns the generation of the component's version.
func (c component) generation() containerdGeneration {
	major, minor := versionNumbers(c.version)
	all := containerdGenerations()
	i := slices.IndexFunc(all, func(g containerdGeneration) bool {
		return cmp.Or(cmp.Compare(major, g.major), cmp.Compare(minor, g.minor)) >= 0
	})
	return all[i]
}

// versionNumbers returns the first two numbers of a version such as v1.36.3.
func versionNumbers(version string) (major, minor int) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, minor
}

// containerdConfig runs the command `containerd config` with default, dump or migrate.
func (c component) containerdConfig() int {
	if !slices.Contains(c.p.Args, "default") {
		config, err := c.loadContainerdConfig()
		if err == nil {
			_, err = c.p.Stdout.Write(config.text)
		}
		if err != nil {
			fmt.Fprintf(c.p.Stderr, "containerd: %v\n", err)
			return 1
		}
		return 0
	}
	text, err := defaultConfigs.ReadFile(path.Join("containerd", "default-"+c.generation().file+".toml"))
	if err != nil {
		fmt.Fprintf(c.p.Stderr, "containerd: %v\n", err)
		return 1
	}
	_, _ = c.p.Stdout.Write(text)
	return 0
}

// containerdSettings are the settings of a configuration that the simulation
// uses.
type containerdSettings struct {
	text    []byte
	pipe    string
	confDir string // the folder of the pod network's configuration
	// logLevel is empty if the configuration has none.
	logLevel string
}

// loadContainerdConfig parses config.toml as strictly as containerd does. A
// missing file is not an error.
func (c component) loadContainerdConfig() (containerdSettings, error) {
	settings := containerdSettings{pipe: ContainerdPipe, confDir: `C:\Program Files\containerd\cni\conf`}
	file := windowsPath(cmp.Or(c.flag("--config"), c.flag("-c"), containerdConfigPath))
	text, err := c.p.p.m.ReadFile(file)
	if errors.Is(err, fault.ErrNotExist) {
		return settings, nil
	}
	if err != nil {
		return settings, err
	}
	if c.generation().major < 2 { // go-toml v1 skips the mark (LoadBytes in its toml.go), v2 does not
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	var config map[string]any
	if err := toml.Unmarshal(text, &config); err != nil {
		return settings, fmt.Errorf("failed to load TOML: %s: %w", file, err)
	}
	version, _ := config["version"].(int64)
	if newest := c.generation().newest; int(version) > newest {
		return settings, fmt.Errorf("expected containerd config version equal to or less than `%d`, got `%d`", newest,
			version)
	}
	settings.text, settings.logLevel = text, tomlText(config, "debug", "level")
	if pipe := tomlText(config, "grpc", "address"); pipe != "" {
		settings.pipe = pipe
	}
	for _, plugin := range []string{"io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"} {
		if folder := tomlText(config, "plugins", plugin, "cni", "conf_dir"); folder != "" {
			settings.confDir = windowsPath(folder)
		}
	}
	return settings, nil
}

func tomlText(config map[string]any, names ...string) string {
	var value any = config
	for _, name := range names {
		table, _ := value.(map[string]any)
		value = table[name]
	}
	text, _ := value.(string)
	return text
}

// windowsPath converts a path of a configuration to its form on the machine.
func windowsPath(path string) string {
	path = strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(path, `\`) && !strings.HasPrefix(path, `\\`) {
		path = systemDrive + path
	}
	return path
}

// networkReady reports whether the folder confDir has the configuration file of a pod network.
func (m *Machine) networkReady(confDir string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	folder, err := m.disk.find(confDir, true)
	if err != nil || !folder.folder {
		return false
	}
	for name := range folder.children {
		if slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(name)) {
			return true
		}
	}
	return false
}

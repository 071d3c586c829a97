package containerdconfig

import (
	"bytes"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Mistake is a mistake in a TOML text that containerd is to read.
type Mistake struct {
	Line, Column int // within the text, counted from 1; 0 if unknown
	What, Remedy string
	// Ignored means that containerd starts and ignores the key. After any other mistake, containerd
	// or its CRI plugin does not start.
	Ignored bool
	// Backslash means that a backslash in double quotes is the mistake.
	Backslash bool
}

// Check returns the mistakes of a text that no version of containerd reads as its author means it.
// The text may be a part of a configuration. The mistakes contain no values, since these may be
// secret.
func Check(text []byte) []Mistake {
	text = bytes.TrimPrefix(text, []byte(windowstext.MarkedUTF8.Mark()))
	var config map[string]any
	if err := toml.Unmarshal(text, &config); err != nil {
		return []Mistake{syntax(text, err)}
	}
	found := locate(text)
	mistakes := append(found.escapes, types(text)...)
	for _, c := range conflicts(config) {
		mistakes = append(mistakes, Mistake{Line: found.lines[dotted(c.path)], Column: 1, What: c.what(),
			Remedy: registryRemedy})
	}
	slices.SortStableFunc(mistakes, func(a, b Mistake) int { return a.Line - b.Line })
	return mistakes
}

const (
	backslash    = "has a backslash in double quotes, where it begins an escape"
	singleQuotes = `write Windows paths in single quotes, as in root = 'C:\containerd'`
)

// backslashInQuotes matches a basic string with a single backslash.
func backslashInQuotes(line string) bool {
	return regexp.MustCompile(`"(\\\\|[^"\\])*\\[^\\]`).MatchString(line)
}

// syntax describes a text that is not TOML.
func syntax(text []byte, err error) Mistake {
	m := Mistake{What: "is not TOML: " + strings.TrimPrefix(err.Error(), "toml: "), Remedy: "correct the TOML"}
	var located *toml.DecodeError
	if !errors.As(err, &located) {
		return m
	}
	m.Line, m.Column = located.Position()
	lines := strings.Split(string(text), "\n")
	if m.Line >= 1 && m.Line <= len(lines) && backslashInQuotes(lines[m.Line-1]) {
		m.What, m.Remedy, m.Backslash = backslash, singleQuotes, true
	}
	return m
}

// known are the parts of containerd's configuration whose types are the same in all versions
// (cmd/containerd/server/config and internal/cri/config of containerd 2.4, services/server/config
// and pkg/cri/config of 1.7).
type known struct {
	Version         int      `toml:"version"`
	Root            string   `toml:"root"`
	State           string   `toml:"state"`
	Temp            string   `toml:"temp"`
	PluginDir       string   `toml:"plugin_dir"`
	OOMScore        int      `toml:"oom_score"`
	DisabledPlugins []string `toml:"disabled_plugins"`
	RequiredPlugins []string `toml:"required_plugins"`
	Imports         []string `toml:"imports"`
	Debug           struct {
		Address    string `toml:"address"`
		UID        int    `toml:"uid"`
		GID        int    `toml:"gid"`
		Level      string `toml:"level"`
		Format     string `toml:"format"`
		LogTraceID bool   `toml:"log_trace_id"`
	} `toml:"debug"`
	GRPC             map[string]any    `toml:"grpc"`
	TTRPC            map[string]any    `toml:"ttrpc"`
	Metrics          map[string]any    `toml:"metrics"`
	Cgroup           map[string]any    `toml:"cgroup"`
	Timeouts         map[string]string `toml:"timeouts"`
	ProxyPlugins     map[string]any    `toml:"proxy_plugins"`
	StreamProcessors map[string]any    `toml:"stream_processors"`
	Plugins          struct {
		CRI     cri `toml:"io.containerd.grpc.v1.cri"`
		Images  cri `toml:"io.containerd.cri.v1.images"`
		Runtime cri `toml:"io.containerd.cri.v1.runtime"`
	} `toml:"plugins"`
}

// cri has the settings of the CRI plugin of containerd 1, and of the plugins into which containerd
// 2 divided it.
type cri struct {
	SandboxImage string            `toml:"sandbox_image"`
	Snapshotter  string            `toml:"snapshotter"`
	PinnedImages map[string]string `toml:"pinned_images"`
	CNI          struct {
		BinDir     string   `toml:"bin_dir"`
		BinDirs    []string `toml:"bin_dirs"`
		ConfDir    string   `toml:"conf_dir"`
		MaxConfNum int      `toml:"max_conf_num"`
	} `toml:"cni"`
	Containerd struct {
		Snapshotter        string `toml:"snapshotter"`
		DefaultRuntimeName string `toml:"default_runtime_name"`
		Runtimes           map[string]struct {
			Type    string         `toml:"runtime_type"`
			Options map[string]any `toml:"options"`
		} `toml:"runtimes"`
	} `toml:"containerd"`
	Registry struct {
		ConfigPath string `toml:"config_path"`
		Mirrors    map[string]struct {
			Endpoints []string `toml:"endpoint"`
		} `toml:"mirrors"`
		Configs map[string]any      `toml:"configs"`
		Auths   map[string]any      `toml:"auths"`
		Headers map[string][]string `toml:"headers"`
	} `toml:"registry"`
}

// types returns the mistakes that the types of containerd's configuration show: the first value of
// a wrong type or, if there is none, the unknown keys outside the plugins.
func types(text []byte) (mistakes []Mistake) {
	var config known
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&config)
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		for _, key := range unknown.Errors {
			if path := key.Key(); len(path) > 0 && path[0] != "plugins" {
				line, column := key.Position()
				mistakes = append(mistakes, Mistake{Line: line, Column: column, Ignored: true,
					What: dotted(path) + " is unknown to containerd, which ignores it", Remedy: "remove it, or correct its name"})
			}
		}
		// Unknown keys hide a wrong type.
		err = toml.Unmarshal(text, &config)
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, column := wrong.Position()
		mistakes = append(mistakes, Mistake{Line: line, Column: column,
			What:   dotted(wrong.Key()) + " has a value of a type that containerd cannot read there",
			Remedy: "write it as `swdt exec -- containerd config default` shows it"})
	}
	return mistakes
}

// conflict is a registry for which both config_path and one of the keys that it replaces are set.
type conflict struct {
	path []string // of the replaced key
}

func (c conflict) what() string {
	return dotted(c.path) + " cannot be set together with config_path: containerd's CRI plugin does not start"
}

const registryRemedy = "remove one of them: config_path names a folder with a hosts.toml for each registry"

// conflicts returns the registries that containerd refuses. See ValidateImageConfig in containerd 2
// and ValidatePluginConfig in containerd 1; the latter alone refuses configs with tls.
func conflicts(config map[string]any) (all []conflict) {
	plugins, _ := config["plugins"].(map[string]any)
	for _, plugin := range []string{criBefore2, criImages} {
		table, _ := plugins[plugin].(map[string]any)
		registry, _ := table["registry"].(map[string]any)
		if folder, _ := registry["config_path"].(string); folder == "" {
			continue
		}
		if mirrors, _ := registry["mirrors"].(map[string]any); len(mirrors) > 0 {
			all = append(all, conflict{[]string{"plugins", plugin, "registry", "mirrors"}})
		}
		hosts, _ := registry["configs"].(map[string]any)
		for _, host := range slices.Sorted(maps.Keys(hosts)) {
			settings, _ := hosts[host].(map[string]any)
			if _, tls := settings["tls"]; tls && plugin == criBefore2 {
				all = append(all, conflict{[]string{"plugins", plugin, "registry", "configs", host, "tls"}})
			}
		}
	}
	return all
}

// Refused returns the reason why containerd's CRI plugin refuses a whole configuration, with a
// remedy, or "" if no reason is known.
func Refused(config map[string]any) string {
	for _, c := range conflicts(config) {
		return c.what() + "; " + registryRemedy
	}
	return ""
}

// located are positions in a TOML text.
type located struct {
	lines   map[string]int // the first line of each key and of each of its parents, by dotted path
	escapes []Mistake      // paths in double quotes with an escape
}

// locate finds keys, and paths whose backslashes are escapes that TOML accepts: "C:\temp" contains
// a tab.
func locate(text []byte) located {
	found := located{lines: map[string]int{}}
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = found.keys(&p, e.Key(), nil)
		case unstable.KeyValue:
			found.pair(&p, e, table)
		}
	}
	return found
}

func (l *located) pair(p *unstable.Parser, pair *unstable.Node, table []string) {
	l.value(p, pair.Value(), l.keys(p, pair.Key(), table))
}

// keys records the line of a key below a table, and returns the key's path.
func (l *located) keys(p *unstable.Parser, keys unstable.Iterator, table []string) []string {
	path := slices.Clone(table)
	for keys.Next() {
		path = append(path, string(keys.Node().Data))
		if at := dotted(path); l.lines[at] == 0 {
			l.lines[at] = p.Shape(keys.Node().Raw).Start.Line
		}
	}
	return path
}

func (l *located) value(p *unstable.Parser, value *unstable.Node, path []string) {
	switch value.Kind {
	case unstable.String:
		if written := p.Raw(value.Raw); regexp.MustCompile(`^"[A-Za-z]:(\\\\|[^"\\])*\\[^\\"]`).Match(written) {
			start := p.Shape(value.Raw).Start
			l.escapes = append(l.escapes, Mistake{Line: start.Line, Column: start.Column,
				What: dotted(path) + " " + backslash, Remedy: singleQuotes, Backslash: true})
		}
	case unstable.Array, unstable.InlineTable:
		for children := value.Children(); children.Next(); {
			if child := children.Node(); child.Kind == unstable.KeyValue {
				l.pair(p, child, path)
			} else {
				l.value(p, child, path)
			}
		}
	}
}

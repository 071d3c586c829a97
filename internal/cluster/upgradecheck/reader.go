package upgradecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Reader collects settings out of texts.
type Reader struct {
	Facts
	table    *kubesettings.Table
	patterns patterns
	counts   map[Place]int // of settings, by their text
}

// NewReader returns a Reader without settings.
func NewReader(table *kubesettings.Table) *Reader {
	return &Reader{table: table, patterns: compiled(), counts: map[Place]int{}, Facts: Facts{proxyReads: map[string]bool{}}}
}

// mostSettings bounds the settings of one text, since a node or a file may have millions.
const mostSettings = 5_000

// add adds a setting, unless its text is full, which it records once.
func (r *Reader) add(s Setting) {
	source := s.Place.source()
	switch r.counts[source]++; {
	case r.counts[source] <= mostSettings:
		r.Settings = append(r.Settings, s)
	case r.counts[source] == mostSettings+1:
		r.unread(source, fmt.Sprintf("has more than %d settings, so the rest was not read", mostSettings))
	}
}

// isFull reports whether the text of a place has more settings than are kept.
func (r *Reader) isFull(p Place) bool { return r.counts[p.source()] > mostSettings }

// source returns the text of a place: a file, or an object.
func (p Place) source() Place {
	if p.File != "" {
		return Place{Node: p.Node, File: p.File}
	}
	return Place{Node: p.Node, Object: p.Object}
}

// unread records that a text was not read.
func (r *Reader) unread(p Place, why string) { r.Unread = append(r.Unread, Unread{Place: p, Why: why}) }

// Unreadable records that a text could not be read, with the reason.
func (r *Reader) Unreadable(p Place, err error) { r.unread(p, err.Error()) }

// CommandLine reads the command line of a Windows service that runs a program. Flags of a wrapper before the program do not
// count.
func (r *Reader) CommandLine(p kubesettings.Program, line string, place Place) {
	words := commandline.Split(line)
	begin := slices.IndexFunc(words, func(word string) bool { return programOf(word) == p })
	first := len(r.Settings)
	r.arguments(p, words[min(begin+1, len(words)):], func(int) Place { return place }, false)
	r.ofWindows(first)
}

// ofWindows marks the settings since one as those of Windows nodes.
func (r *Reader) ofWindows(first int) {
	for i := range r.Settings[first:] {
		r.Settings[first+i].windows = true
	}
}

// programOf returns the program that a path names; "" for another one.
func programOf(path string) kubesettings.Program {
	name := strings.ToLower(path[strings.LastIndexAny(path, `\/`)+1:])
	switch strings.TrimSuffix(strings.Trim(name, `"'`), ".exe") {
	case "kubelet":
		return kubesettings.Kubelet
	case "kube-proxy":
		return kubesettings.KubeProxy
	}
	return ""
}

// arguments reads the arguments of a program. place returns the place of one of them by its index.
func (r *Reader) arguments(p kubesettings.Program, args []string, place func(int) Place, linux bool) {
	first := len(r.Settings)
	config := false
	for i := 0; i < len(args); i++ {
		name, value, ok := strings.Cut(args[i], "=")
		bare := strings.TrimLeft(name, "-")
		if bare == name || bare == "" {
			continue
		}
		at := place(i)
		if !ok && i+1 < len(args) && commandline.IsValue(args[i+1]) {
			i++
			value = args[i]
		}
		r.flag(p, bare, value, CommandLine, at, linux)
		config = config || bare == "config" && value != ""
	}
	if p == kubesettings.KubeProxy && config {
		r.ignore(first)
	}
}

// ignore marks the feature gates since a setting as ignored: the file of --config replaces kube-proxy's flags
// (Options.Complete in cmd/kube-proxy/app/options.go).
func (r *Reader) ignore(first int) {
	for i := range r.Settings[first:] {
		if s := &r.Settings[first+i]; s.Kind == GateSetting {
			s.Ignored = "the file of --config replaces it"
		}
	}
}

// flag adds a flag, or the gates of --feature-gates.
func (r *Reader) flag(p kubesettings.Program, name, value string, form Form, place Place, linux bool) {
	name = strings.ReplaceAll(name, "_", "-") // both programs take either
	if name != "feature-gates" {
		r.add(Setting{Program: p, Kind: FlagSetting, Name: name, Value: value, Form: form, Place: place, Linux: linux})
		return
	}
	for _, pair := range r.patterns.values.FindAllStringSubmatch(value, -1) {
		r.add(Setting{Program: p, Kind: GateSetting, Name: pair[1], Value: strings.ToLower(pair[2]), Form: form, Place: place,
			Linux: linux})
	}
}

// KubeadmFlags reads kubeadm-flags.env, which kubeadm writes and a wrapper's script adds to kubelet's command line.
func (r *Reader) KubeadmFlags(text string, place Place) { r.variables(text, "", place) }

// variables reads the lines NAME=ARGUMENTS of a file whose names begin with a prefix: their values are kubelet's
// arguments.
func (r *Reader) variables(text, prefix string, place Place) {
	for i, line := range strings.Split(text, "\n") {
		name, args, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok || strings.HasPrefix(name, "#") || !strings.HasPrefix(strings.TrimSpace(name), prefix) {
			continue
		}
		args = strings.Trim(strings.TrimSpace(args), `"'`)
		r.arguments(kubesettings.Kubelet, strings.Fields(args), func(int) Place { return place.at(i + 1) }, false)
	}
}

// Containerd reads a configuration of containerd. version is that of the containerd which reads it now; "": unknown.
func (r *Reader) Containerd(text []byte, version string, place Place) {
	if err := toml.Unmarshal(withoutMark(text), new(map[string]any)); err != nil {
		r.unread(place, fmt.Sprintf("is not TOML: %v", err))
		return
	}
	r.Facts.Containerd = append(r.Facts.Containerd, ContainerdFile{Place: place, Version: version, Text: text})
}

// CNI reads the network configuration that containerd of a node uses: a list of plugins, or one plugin.
func (r *Reader) CNI(text []byte, place Place) {
	type plugin struct {
		Type string `json:"type"`
	}
	var file struct {
		plugin
		Plugins []plugin `json:"plugins"`
	}
	if err := json.Unmarshal(withoutMark(text), &file); err != nil {
		r.unread(place, fmt.Sprintf("is not JSON: %v", err))
		return
	}
	found := NetworkFile{Place: place}
	for _, p := range append([]plugin{file.plugin}, file.Plugins...) {
		if p.Type != "" {
			found.Plugins = append(found.Plugins, p.Type)
		}
	}
	r.Networks = append(r.Networks, found)
}

// withoutMark returns a text without a byte order mark, which containerd 1 skips.
func withoutMark(text []byte) []byte {
	return bytes.TrimPrefix(text, []byte(windowstext.MarkedUTF8.Mark()))
}

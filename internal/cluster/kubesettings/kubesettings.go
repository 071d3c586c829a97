// Package kubesettings has the settings that Kubernetes' programs on a Windows node take, by minor version: feature
// gates with their stages and dependencies, flags of kubelet and kube-proxy, fields of KubeletConfiguration and
// KubeProxyConfiguration.
//
// The table, settings.json, is made by tools/kubesettings from the published modules, whose versions and hashes are in
// it. A setting has its changes: "34 ga on locked" is its state from 1.34 on, "38 gone" means that 1.38 has it no more.
// kubelet and kube-proxy know the same gates, on all systems.
package kubesettings

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed settings.json
var settings []byte

// Program is a program with settings.
type Program string

// The programs of the table.
const (
	Kubelet   Program = "kubelet"
	KubeProxy Program = "kube-proxy"
)

// Kind returns the kind of the program's configuration file.
func (p Program) Kind() string {
	if p == KubeProxy {
		return "KubeProxyConfiguration"
	}
	return "KubeletConfiguration"
}

// Table is the table of settings.
type Table struct {
	sources      map[string]map[string]string
	gates        history
	dependencies history
	flags        map[string]history // by program
	fields       map[string]history // by kind
	oldest       int
	newest       int
}

// history has the changes of settings by their names, the oldest first.
type history map[string][]change

type change struct {
	minor int
	state string
}

// gone is the state of a setting that a version no longer has.
const gone = "gone"

// UnmarshalJSON reads changes such as "34 ga on locked".
func (c *change) UnmarshalJSON(text []byte) error {
	var line string
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	minor, state, _ := strings.Cut(line, " ")
	number, err := strconv.Atoi(minor)
	*c = change{number, state}
	return err
}

// Load reads the table.
func Load() (*Table, error) {
	var file struct {
		Sources      map[string]map[string]string
		Gates        history
		Dependencies history
		Flags        map[string]history
		Fields       map[string]history
	}
	if err := json.Unmarshal(settings, &file); err != nil {
		return nil, fmt.Errorf("read the table of Kubernetes' settings: %w", err)
	}
	t := &Table{sources: file.Sources, gates: file.Gates, dependencies: file.Dependencies, flags: file.Flags, fields: file.Fields}
	for text := range t.sources {
		minor, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("read the table of Kubernetes' settings: %w", err)
		}
		if t.oldest == 0 || minor < t.oldest {
			t.oldest = minor
		}
		t.newest = max(t.newest, minor)
	}
	return t, nil
}

// Oldest returns the oldest minor version of the table, and Newest the newest.
func (t *Table) Oldest() int { return t.oldest }

// Newest returns the newest minor version of the table.
func (t *Table) Newest() int { return t.newest }

// Source returns the version of k8s.io/kubernetes that a minor version was read from, such as v1.36.3.
func (t *Table) Source(minor int) string {
	version, _, _ := strings.Cut(t.sources[strconv.Itoa(minor)]["k8s.io/kubernetes"], " ")
	return version
}

// State is a setting in a minor version.
type State struct {
	// Known reports whether the version has the setting.
	Known bool
	// Since is the first minor version of the table with this state. If the version does not know the setting but an
	// older one did, Since is the first version without it. 0: no version up to this one has known it.
	Since int
	// Gone is the first newer minor version of the table that no longer has the setting; 0: all have it.
	Gone int
}

// Gate is a feature gate in a minor version.
type Gate struct {
	State
	Stage  string // alpha, beta, ga or deprecated
	On     bool   // the default
	Locked bool   // a program refuses another value than the default
}

// Gate returns a feature gate in a minor version.
func (t *Table) Gate(name string, minor int) Gate {
	state, words := t.gates.at(name, minor)
	g := Gate{State: state}
	if parts := strings.Fields(words); state.Known && len(parts) > 1 {
		g.Stage, g.On, g.Locked = parts[0], parts[1] == "on", slices.Contains(parts, "locked")
	}
	return g
}

// Gates returns the names of all gates of any version, sorted.
func (t *Table) Gates() []string { return slices.Sorted(maps.Keys(t.gates)) }

// Needs returns the gates that a gate needs in a minor version.
func (t *Table) Needs(name string, minor int) []string {
	state, words := t.dependencies.at(name, minor)
	if !state.Known {
		return nil
	}
	return strings.Fields(words)
}

// Flag is a flag of a program in a minor version.
type Flag struct {
	State
	Deprecated bool // the program logs a line
}

// Flag returns a flag of a program in a minor version. The name has no dashes before it.
func (t *Table) Flag(p Program, name string, minor int) Flag {
	state, words := t.flags[string(p)].at(name, minor)
	return Flag{State: state, Deprecated: words == "deprecated"}
}

// Flags returns the names of a program's flags in a minor version, sorted.
func (t *Table) Flags(p Program, minor int) (all []string) {
	for name := range t.flags[string(p)] {
		if t.Flag(p, name, minor).Known {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Field returns a field of a program's configuration file in a minor version. The path is such as
// authentication.x509.clientCAFile; a list's elements are name[], and the keys of a map are no fields.
func (t *Table) Field(p Program, path string, minor int) State {
	state, _ := t.fields[p.Kind()].at(path, minor)
	return state
}

// HasFields reports whether a field has fields of its own in any version: it is no map with free keys.
func (t *Table) HasFields(p Program, path string) bool {
	for name := range t.fields[p.Kind()] {
		if strings.HasPrefix(name, path+".") || strings.HasPrefix(name, path+"[].") {
			return true
		}
	}
	return false
}

// at returns the state of a setting in a minor version, and the rest of its words.
func (h history) at(name string, minor int) (state State, words string) {
	for _, c := range h[name] {
		switch {
		case c.minor <= minor:
			state, words = State{Known: c.state != gone, Since: c.minor}, c.state
		case c.state == gone && state.Gone == 0:
			state.Gone = c.minor
		}
	}
	return state, words
}

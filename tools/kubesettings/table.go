package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// gone is the state of a setting that a version no longer has.
const gone = "gone"

// table has the settings of all versions. A setting has its changes: the minor version, and the state from then on.
type table struct {
	sources      map[string]map[string]string // by minor version and module
	gates        history
	dependencies history
	flags        map[string]history // by program
	fields       map[string]history // by kind
}

// history has the changes of settings by their names, such as "34 ga on locked".
type history map[string][]change

type change struct {
	minor int
	state string
}

func newTable() *table {
	return &table{sources: map[string]map[string]string{}, gates: history{}, dependencies: history{},
		flags:  map[string]history{"kubelet": {}, "kube-proxy": {}},
		fields: map[string]history{}}
}

// add adds the settings of a version that is newer than all before.
func (t *table) add(minor int, s *source) error {
	t.sources[fmt.Sprint(minor)] = s.hashes
	known, err := gates(s, minor)
	if err != nil {
		return err
	}
	states := map[string]string{}
	for name, g := range known {
		states[name] = g.String()
	}
	t.gates.add(minor, states)
	needed, err := dependencies(s)
	if err != nil {
		return err
	}
	states = map[string]string{}
	for name, list := range needed {
		states[name] = strings.Join(list, " ")
	}
	t.dependencies.add(minor, states)
	for program, h := range t.flags {
		found, err := flags(s, program)
		if err != nil {
			return err
		}
		h.add(minor, found)
	}
	for _, c := range configurations() {
		paths, err := fields(s, c)
		if err != nil {
			return err
		}
		if t.fields[c.kind] == nil {
			t.fields[c.kind] = history{}
		}
		states := map[string]string{}
		for _, path := range paths {
			states[path] = flagKnown
		}
		t.fields[c.kind].add(minor, states)
	}
	return nil
}

func (h history) add(minor int, states map[string]string) {
	for name, state := range states {
		if h.last(name) != state {
			h[name] = append(h[name], change{minor, state})
		}
	}
	for name := range h {
		if _, known := states[name]; !known && h.last(name) != gone {
			h[name] = append(h[name], change{minor, gone})
		}
	}
}

func (h history) last(name string) string {
	if all := h[name]; len(all) > 0 {
		return all[len(all)-1].state
	}
	return ""
}

// text returns the table as JSON, with one line for each setting.
func (t *table) text() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\n")
	b.WriteString("\"sources\": {\n")
	minors := sortedKeys(t.sources)
	for i, minor := range minors {
		line, err := json.Marshal(t.sources[minor])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, " %q: %s%s\n", minor, line, comma(i, len(minors)))
	}
	b.WriteString("},\n\"gates\": ")
	t.gates.write(&b)
	b.WriteString(",\n\"dependencies\": ")
	t.dependencies.write(&b)
	writeAll(&b, "flags", t.flags)
	writeAll(&b, "fields", t.fields)
	b.WriteString("\n}\n")
	if !json.Valid(b.Bytes()) {
		return nil, fmt.Errorf("the table is not JSON")
	}
	return b.Bytes(), nil
}

func writeAll(b *bytes.Buffer, name string, all map[string]history) {
	fmt.Fprintf(b, ",\n%q: {\n", name)
	kinds := sortedKeys(all)
	for i, kind := range kinds {
		fmt.Fprintf(b, "%q: ", kind)
		all[kind].write(b)
		b.WriteString(comma(i, len(kinds)) + "\n")
	}
	b.WriteString("}")
}

func (h history) write(b *bytes.Buffer) {
	b.WriteString("{\n")
	names := sortedKeys(h)
	for i, name := range names {
		fmt.Fprintf(b, " %q: [", name)
		for j, c := range h[name] {
			fmt.Fprintf(b, "\"%d %s\"%s", c.minor, c.state, comma(j, len(h[name])))
		}
		fmt.Fprintf(b, "]%s\n", comma(i, len(names)))
	}
	b.WriteString("}")
}

func comma(i, of int) string {
	if i+1 < of {
		return ","
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

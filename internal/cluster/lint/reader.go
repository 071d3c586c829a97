package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	paths "path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
)

// Reader collects texts, fixes them and holds them against the rules.
type Reader struct {
	// Paths are fields of other kinds that hold the template of pods, by kind, such as Rollout: spec.template.
	Paths map[string]string

	texts   []text
	skipped []Unread // files that are no text
	fixed   []Fixed
	// unfixable are the fixes that the form of the texts does not allow.
	unfixable map[failedFix]bool
}

// text is a text with manifests.
type text struct {
	name     string // of its file; "": it is an object of a cluster
	content  []byte
	template bool // Helm's
	checked  checked
	before   []byte // what Fix has changed; nil: nothing
}

// checked is the part of the objects of a text that the rules look at.
type checked int

const (
	everything checked = iota
	status             // the status alone
	nothing
)

// reading has the objects of all texts.
type reading struct {
	paths   map[string]string
	objects []*object
	broken  []broken
	unread  []Unread
}

// broken is a document that is no YAML, and no template.
type broken struct {
	file string
	line int
	err  error
}

// Unread is a text that was not read, or only in part.
type Unread struct {
	File string `json:"file"`
	Line int    `json:"line"` // of the object that was not read, from 1; 0: the whole file
	Why  string `json:"why"`
}

// Folder reads the YAML and JSON files below a folder. Hidden folders are left out. prefix is written before each name.
func (r *Reader) Folder(folder fs.FS, prefix string) error {
	return documents.Folder(folder, documents.Files{
		Wanted:  documents.IsManifest,
		Read:    func(name string, content []byte) { r.add(prefix+name, content, isTemplate(name, content)) },
		Skipped: func(name, why string) { r.skipped = append(r.skipped, Unread{File: prefix + name, Why: why}) },
	})
}

// File reads a file of any name.
func (r *Reader) File(name string, content []byte) { r.add(name, content, isTemplate(name, content)) }

// Stream reads a text that has no name, such as the output of kustomize or helm. shown stands for its file.
func (r *Reader) Stream(shown string, content []byte) { r.add(shown, content, false) }

// Live reads an object of a cluster, as JSON. Its findings have no file, line or column.
func (r *Reader) Live(content []byte) { r.texts = append(r.texts, text{content: content}) }

// Around reads an object of a cluster, as JSON, that the rules hold others against, and that is not checked itself.
func (r *Reader) Around(content []byte) {
	r.texts = append(r.texts, text{content: content, checked: nothing})
}

// LiveStatus reads an object of a cluster, as JSON, of which the status alone is checked: its maker is read, too.
func (r *Reader) LiveStatus(content []byte) {
	r.texts = append(r.texts, text{content: content, checked: status})
}

// files counts the texts that are no objects of a cluster.
func (r *Reader) files() (n int) {
	for _, t := range r.texts {
		if t.name != "" {
			n++
		}
	}
	return n
}

func (r *Reader) add(name string, content []byte, template bool) {
	r.texts = append(r.texts, text{name: name, content: content, template: template})
}

// isTemplate reports whether a file is a template of Helm, which is no YAML before helm has rendered it.
func isTemplate(name string, content []byte) bool {
	return bytes.Contains(content, []byte("{{")) && strings.Contains("/"+strings.ReplaceAll(name, `\`, "/"), "/templates/")
}

// read reads the objects of all texts.
func (r *Reader) read() *reading {
	all := &reading{paths: r.Paths}
	for _, u := range r.skipped {
		all.skip(u.File, u.Line, u.Why)
	}
	for i, t := range r.texts {
		all.text(i, t)
	}
	return all
}

// text reads a text with its index.
func (r *reading) text(index int, t text) {
	if t.template {
		r.skip(t.name, 0, "is a template: render it first, with helm template")
		return
	}
	braces := bytes.Contains(t.content, []byte("{{"))
	documents.Each(t.content, func(d documents.Document) {
		if d.Cut {
			r.skip(t.name, d.Value.Line, fmt.Sprintf("has values below %d others, or aliases that lead into themselves or stand for more than %d values: these were not read",
				documents.Deepest, documents.MostAliased))
		}
		for _, item := range documents.Items(d.Value) {
			r.object(t, item.Value, part{index, d.Begin, d.End, item.Path}, braces)
		}
	}, func(b documents.Broken) { r.addBroken(t.name, b) })
}

// addBroken records a document that is no YAML. It is a mistake, unless it may be a template, or JSON for another program.
func (r *reading) addBroken(file string, b documents.Broken) {
	isOther := strings.EqualFold(paths.Ext(file), ".json") && !bytes.Contains(b.Text, []byte("apiVersion"))
	if isOther || bytes.Contains(b.Text, []byte("{{")) {
		r.skip(file, b.Line, fmt.Sprintf("is not YAML: %v", b.Err))
		return
	}
	r.broken = append(r.broken, broken{file, b.Line, b.Err})
}

// object reads one object. A document without a kind is none of Kubernetes' own, and is left out. braces reports that the
// file has {{, so that it may be a template which YAML can read.
func (r *reading) object(t text, n *yaml.Node, in part, braces bool) {
	file := t.name
	o := &object{file: file, checked: t.checked, node: n, in: in, kind: documents.Text(n, "kind"), name: documents.Text(n, "metadata", "name"),
		namespace: documents.Text(n, "metadata", "namespace"), group: groupOf(documents.Text(n, "apiVersion"))}
	if o.kind == "" || documents.Text(n, "apiVersion") == "" || o.kind == "Secret" {
		return
	}
	o.readPods(r.paths)
	if o.wrong != nil && braces {
		r.skip(file, n.Line, o.String()+" is a template: fill it in first")
		return
	}
	r.objects = append(r.objects, o)
}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// mostUnread bounds the list of what was not read.
const mostUnread = 1_000

func (r *reading) skip(file string, line int, why string) {
	if len(r.unread) < mostUnread {
		r.unread = append(r.unread, Unread{File: file, Line: line, Why: why})
	}
}

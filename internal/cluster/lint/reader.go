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

// Reader collects objects out of texts.
type Reader struct {
	// Paths are fields of other kinds that hold the template of pods, by kind, such as Rollout: spec.template.
	Paths map[string]string

	objects []*object
	broken  []broken
	unread  []Unread
	texts   int
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
		Read:    func(name string, content []byte) { r.read(prefix+name, content, isTemplate(name, content)) },
		Skipped: func(name, why string) { r.skip(prefix+name, 0, why) },
	})
}

// File reads a file of any name.
func (r *Reader) File(name string, content []byte) { r.read(name, content, isTemplate(name, content)) }

// Stream reads a text that has no name, such as the output of kustomize or helm. shown stands for its file.
func (r *Reader) Stream(shown string, content []byte) { r.read(shown, content, false) }

// isTemplate reports whether a file is a template of Helm, which is no YAML before helm has rendered it.
func isTemplate(name string, content []byte) bool {
	return bytes.Contains(content, []byte("{{")) && strings.Contains("/"+strings.ReplaceAll(name, `\`, "/"), "/templates/")
}

func (r *Reader) read(name string, content []byte, template bool) {
	r.texts++
	if template {
		r.skip(name, 0, "is a template: render it first, with helm template")
		return
	}
	documents.Each(content, func(n *yaml.Node, cut bool) {
		if cut {
			r.skip(name, n.Line, fmt.Sprintf("has values below %d others, or aliases that lead into themselves or stand for more than %d values: these were not read",
				documents.Deepest, documents.MostAliased))
		}
		for _, item := range documents.Items(n) {
			r.object(name, item, bytes.Contains(content, []byte("{{")))
		}
	}, func(b documents.Broken) { r.addBroken(name, b) })
}

// addBroken records a document that is no YAML. It is a mistake, unless it may be a template, or JSON for another program.
func (r *Reader) addBroken(file string, b documents.Broken) {
	isOther := strings.EqualFold(paths.Ext(file), ".json") && !bytes.Contains(b.Text, []byte("apiVersion"))
	if isOther || bytes.Contains(b.Text, []byte("{{")) {
		r.skip(file, b.Line, fmt.Sprintf("is not YAML: %v", b.Err))
		return
	}
	r.broken = append(r.broken, broken{file, b.Line, b.Err})
}

// object reads one object. A document without a kind is none of Kubernetes' own, and is left out. braces reports that the
// file has {{, so that it may be a template which YAML can read.
func (r *Reader) object(file string, n *yaml.Node, braces bool) {
	o := &object{file: file, node: n, kind: documents.Text(n, "kind"), name: documents.Text(n, "metadata", "name"),
		namespace: documents.Text(n, "metadata", "namespace"), group: groupOf(documents.Text(n, "apiVersion"))}
	if o.kind == "" || documents.Text(n, "apiVersion") == "" || o.kind == "Secret" {
		return
	}
	o.readPods(r.Paths)
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

func (r *Reader) skip(file string, line int, why string) {
	if len(r.unread) < mostUnread {
		r.unread = append(r.unread, Unread{File: file, Line: line, Why: why})
	}
}

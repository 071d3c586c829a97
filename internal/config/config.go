// Package config reads node files: it turns YAML documents from files, folders and
// stdin into validated nodes with their defaults, or into one error that holds every
// problem, each with file, line and field path.
//
//   - load.go: sources to documents; checks across documents
//   - parse.go: text to YAML documents; the kind of a document
//   - syntax.go: explanations for YAML that does not parse
//   - decode.go: YAML to the types of api/v1alpha1, strictly
//   - fields.go, suggest.go: the known fields; suggestions for misspelt ones
//   - nested.go: the documents of containerd and kubelet within a node file
//   - cluster.go: the document of a cluster
//   - select.go: --node and --selector
//   - resolve.go: ~, $VARIABLES and relative paths
//   - older.go: the formats of older swdts, and how to recognise them
//   - convert.go: older formats to today's; convert_cluster.go: the kind Cluster of the original's fork;
//     convert_older.go, convert_tree.go: the values of an older document, and those that are left
//   - starter.go: the file that `swdt config init` writes
//
// No problem contains a secret: its text does not quote values that could hold a
// password.
package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// Document is one validated node of a node file, with its defaults.
type Document struct {
	Node v1alpha1.Node
	// File is the path that the user gave or that swdt found; "-" means stdin.
	File string
	// Line is the first line of the document.
	Line int
	// Warnings are complete lines for the user: file:line: field: problem; remedy.
	Warnings []string
	// OtherMeanings are complete lines for the user, like Warnings. Each describes what
	// `swdt setup` does because of a field that may have had another meaning in the swdt
	// for which the file was written.
	OtherMeanings []string
	// KnownHosts is the path of a known_hosts file for this node alone. If the path is "",
	// swdt uses the user's known_hosts. AcceptNewHostKey reports whether the file at
	// KnownHosts has no key yet. If so, swdt adds the host key of the first contact to it.
	KnownHosts       string
	AcceptNewHostKey bool

	nameLine int            // line of the node's name
	lines    map[string]int // by field path
}

// Problem returns a problem with a field of this node, with the field's file and line. It
// is for problems that are found after the file was read.
func (d Document) Problem(field, what, remedy string) Problem {
	return Problem{File: d.File, Line: lineOf(field, d.lines), Field: field, What: what, Remedy: remedy}
}

// OfFile reports whether a node file has the node. If not, only the node's name was given.
func (d Document) OfFile() bool { return d.Line > 0 }

// RuntimePipe returns the pipe on which the node's container runtime serves CRI.
func (d Document) RuntimePipe() string {
	for _, p := range d.Node.Spec.Kubernetes.Provisioners {
		if p.Health != nil && p.Health.CRIPipe != "" {
			return p.Health.CRIPipe
		}
	}
	return v1alpha1.ContainerdPipe
}

// Error holds every problem of the node files. If a command returns an *Error, swdt has not
// contacted any machine; the exit code is 2.
type Error struct {
	Problems []Problem
}

// Error returns one problem per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is an error in the node files or, in a warning, a possible improvement.
type Problem struct {
	File   string `json:"file"`  // "" for a problem of a flag, or if no default file was found
	Line   int    `json:"line"`  // 0: the problem concerns no line, but the whole file or no file
	Field  string `json:"field"` // such as spec.kubernetes.provisioners[1].destination; may be empty
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// String returns file:line: field: problem; remedy. It omits the parts that are empty.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(displayKey(p.Field) + ": ")
	}
	b.WriteString(p.What)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// asError returns nil if there are no problems. It keeps the order of the files, and sorts the
// problems of each file by line.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	position := map[string]int{} // the index of each file among the files with problems
	for _, p := range problems {
		if _, ok := position[p.File]; !ok {
			position[p.File] = len(position)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(position[a.File], position[b.File]), cmp.Compare(a.Line, b.Line))
	})
	return &Error{Problems: problems}
}

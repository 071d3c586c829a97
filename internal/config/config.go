// Package config reads node files: YAML documents from files, folders and stdin
// become validated nodes with their defaults, or one error that holds every
// problem, each with file, line and field path.
//
//   - load.go: sources to documents; what spans documents
//   - parse.go: text to YAML documents; what kind they are
//   - syntax.go: what is wrong with YAML that does not parse
//   - decode.go: YAML to the types of api/v1alpha1, strictly
//   - fields.go, suggest.go: the fields there are; did you mean
//   - select.go: --node and --selector
//   - resolve.go: ~, $VARIABLES and relative paths
//   - older.go: the formats of older swdts, and how to tell them
//   - convert.go: older formats to today's
//   - starter.go: what `swdt config init` writes
//
// Nothing secret gets into a problem: values are not quoted where they could
// hold a password.
package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// Document is one node of a node file, with its defaults, validated.
type Document struct {
	Node v1alpha1.Node
	// File is the path as it was given or found, - for stdin.
	File string
	// Line is where the document begins.
	Line int
	// Warnings are complete lines for people: file:line: field: what; remedy.
	Warnings []string
	// OtherMeanings are complete lines for people too: what `swdt setup` does
	// because of a field that the swdt this file was written for may have
	// understood differently.
	OtherMeanings []string

	nameLine int            // where its name is
	lines    map[string]int // by field path
}

// Problem is one about a field of this node, found beside the file's own text.
func (d Document) Problem(field, what, remedy string) Problem {
	return Problem{File: d.File, Line: lineOf(field, d.lines), Field: field, What: what, Remedy: remedy}
}

// RuntimePipe is where the node's container runtime serves CRI.
func (d Document) RuntimePipe() string {
	for _, p := range d.Node.Spec.Kubernetes.Provisioners {
		if p.Health != nil && p.Health.CRIPipe != "" {
			return p.Health.CRIPipe
		}
	}
	return v1alpha1.ContainerdPipe
}

// Error is everything that is wrong with the node files. Nothing was contacted;
// the exit code is 2.
type Error struct {
	Problems []Problem
}

// Error has one problem a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is one thing that is wrong, or, in a warning, could be better.
type Problem struct {
	File   string // empty: not about a file (a flag, the default lookup)
	Line   int    // 0: about the file as a whole, which could not be read
	Field  string // spec.kubernetes.provisioners[1].destination; may be empty
	What   string
	Remedy string
}

// String is file:line: field: what is wrong; what to do. Parts that are not
// there are left out.
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

// asError is nil without problems. Problems of one file come in line order.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.File != b.File {
			return 0
		}
		return cmp.Compare(a.Line, b.Line)
	})
	return &Error{Problems: problems}
}

package readiness

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/junit"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/htmlpage"
)

// The files of a report in the folder of its run.
const (
	ReportName = "readiness.json"
	JUnitName  = "junit.xml"
	PageName   = "report.html"
)

//go:embed page.html
var page string

// Save writes the files of the report into a folder. A reader finds whole files only.
func (r Report) Save(folder string) error {
	for name, write := range map[string]func(io.Writer) error{
		ReportName: r.writeJSON, JUnitName: r.WriteJUnit, PageName: r.WritePage,
	} {
		if err := localfile.ReplaceBy(filepath.Join(folder, name), write); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(folder, name), err)
		}
	}
	return nil
}

func (r Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteJUnit writes the report as JUnit XML, with a test for each case in the class of its category. A case that
// is not possible here is skipped, and one that was not run has an error.
func (r Report) WriteJUnit(w io.Writer) error {
	s := junit.Suite{Name: "swdt readiness", Begin: r.Begin, Seconds: r.Seconds,
		Properties: []junit.Property{{Name: "cluster", Value: r.Cluster}, {Name: "kubernetes", Value: r.Kubernetes},
			{Name: "summary", Value: r.Sentence()}}}
	for _, c := range r.Cases {
		s.Cases = append(s.Cases, c.junit())
	}
	return junit.Write(w, s)
}

func (c CaseResult) junit() junit.Case {
	first, _, _ := strings.Cut(c.Message, "\n")
	out, message := junit.Case{Name: c.ID, Class: c.Category, Seconds: c.Seconds, Output: c.parts()},
		&junit.Message{Type: c.Result, Message: first, Text: c.Message}
	switch c.Result {
	case Proved:
	case Failed:
		out.Failure = message
	case NotPossible:
		out.Skipped = message
	default:
		out.Error = message
	}
	return out
}

// parts returns a line for the case, and one for each of its nodes and specs.
func (c CaseResult) parts() string {
	text := c.Proves + "\n"
	line := func(result, name, message string) {
		if text += ui.Words(result) + ": " + name; message != "" {
			text += ": " + message
		}
		text += "\n"
	}
	for _, n := range c.Nodes {
		line(n.Result, "node "+n.Name+" ("+n.Build+")", n.Message)
	}
	for _, s := range c.Specs {
		line(s.Result, s.Name, s.Message)
	}
	return text
}

// group has the cases of a category.
type group struct {
	Name  string
	Cases []CaseResult
}

// groups returns the cases by category, in the order of the report.
func groups(r Report) (all []group) {
	at := map[string]int{}
	for _, c := range r.Cases {
		i, ok := at[c.Category]
		if !ok {
			i = len(all)
			at[c.Category] = i
			all = append(all, group{Name: c.Category})
		}
		all[i].Cases = append(all[i].Cases, c)
	}
	return all
}

// WritePage writes the report as one page, which loads nothing and runs no script.
func (r Report) WritePage(w io.Writer) error {
	return htmlpage.Write(w, page, template.FuncMap{
		"took": took, "class": class, "groups": groups,
	}, r)
}

// class returns the class of a result's elements.
func class(result string) string {
	switch result {
	case Proved:
		return "good"
	case Failed:
		return "bad"
	}
	return "warn"
}

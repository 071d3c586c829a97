package selftest

import (
	_ "embed"
	"html/template"
	"io"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/htmlpage"
)

//go:embed page.html
var page string

// WritePage writes the report as one page, which loads nothing and runs no script.
func (r Report) WritePage(w io.Writer) error {
	return htmlpage.Write(w, page, template.FuncMap{
		"grade":  func(g Grade) string { return ui.Printable(g.String()) },
		"result": func(o Outcome) string { return map[Outcome]string{Impossible: "not possible", NotRun: "not run"}[o] },
		"class":  class,
	}, r)
}

// class returns the class of CSS for an outcome; "" for a word that is none, which a hostile report may have.
func class(o Outcome) string {
	if slices.Contains([]Outcome{Passed, Failed, Impossible, NotRun}, o) {
		return string(o)
	}
	return ""
}

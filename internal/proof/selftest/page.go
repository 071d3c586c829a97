package selftest

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

//go:embed page.html
var page string

// WritePage writes the report as one page, which loads nothing and runs no script.
func (r Report) WritePage(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"line": ui.Printable, "lines": ui.PrintableLines,
		"utc":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"grade":  func(g Grade) string { return ui.Printable(g.String()) },
		"result": func(o Outcome) string { return map[Outcome]string{Impossible: "not possible", NotRun: "not run"}[o] },
		"class":  class,
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, r); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// class returns the class of CSS for an outcome; "" for a word that is none, which a hostile report may have.
func class(o Outcome) string {
	if slices.Contains([]Outcome{Passed, Failed, Impossible, NotRun}, o) {
		return string(o)
	}
	return ""
}

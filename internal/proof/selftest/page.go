package selftest

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
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
		"grade":  func(g Grade) string { return g.String() },
		"result": func(o Outcome) string { return map[Outcome]string{Impossible: "not possible", NotRun: "not run"}[o] },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, r); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

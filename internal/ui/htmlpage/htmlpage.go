// Package htmlpage writes reports as pages that load nothing and run no script.
package htmlpage

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// style has the template "style": the colours and the look that pages share, light and dark.
//
//go:embed style.html
var style string

// scroll is the look of boxes that scroll sideways, of the classes wide and scroll.
//
//go:embed scroll.css
var scroll string

// Scroll returns the template "scroll" as CSS, for pages that are no templates. The page has the property --back.
func Scroll() string { return scroll }

// Write writes data as the page of an HTML template, which html/template escapes. The template has the
// functions line and lines (text with visible control characters), words, seconds and utc, and those of own,
// which come first if names are equal. Its style may begin with {{template "style"}}, and
// have {{template "scroll"}}.
func Write(w io.Writer, page string, own template.FuncMap, data any) error {
	functions := template.FuncMap{
		"line": ui.Printable, "lines": ui.PrintableLines, "words": ui.Words,
		"seconds": func(s float64) string { return ui.Seconds(time.Duration(s * float64(time.Second))) },
		"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}
	maps.Copy(functions, own)
	t, err := template.New("page").Funcs(functions).Parse(style + `{{define "scroll"}}` + scroll + `{{end}}`)
	if err == nil {
		t, err = t.Parse(page)
	}
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, data); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

package netpol

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

//go:embed page.html
var page string

// WritePage writes the report as one page, which loads nothing and runs no script.
func (r Report) WritePage(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"line": ui.Printable, "words": ui.Words, "class": class,
		"marks":   func(row string) []string { return strings.Split(row, "") },
		"name":    nameAt,
		"seconds": func(s float64) string { return ui.Seconds(time.Duration(s * float64(time.Second))) },
		"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	if err := t.Execute(w, r); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// PodNames returns the names of the pods in tables.
func (r Report) PodNames() []string {
	names := []string{}
	for _, p := range r.Pods {
		names = append(names, p.Name)
	}
	return names
}

func nameAt(names []string, i int) string {
	if i >= len(names) {
		return ""
	}
	return ui.Printable(names[i])
}

// class returns the class of a mark's cell.
func class(mark string) string {
	switch mark {
	case string(markAllowed):
		return "pass"
	case string(markDenied):
		return "deny"
	case string(markLeaks), string(markBlocked):
		return "wrong"
	case string(markUnknown):
		return "unknown"
	}
	return "own"
}

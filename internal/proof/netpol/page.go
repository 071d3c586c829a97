package netpol

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/htmlpage"
)

//go:embed page.html
var page string

// WritePage writes the report as one page, which loads nothing and runs no script.
func (r Report) WritePage(w io.Writer) error {
	return htmlpage.Write(w, page, template.FuncMap{
		"class":   class,
		"marks":   func(row string) []string { return strings.Split(row, "") },
		"leftOut": leftOutSentence,
		"name":    nameAt,
	}, r)
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
	case string(markUnknown), string(markLimited):
		return "unknown"
	}
	return "own"
}

package scale

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/htmlpage"
)

//go:embed page.html
var page string

// WritePage writes the report as one page, which loads nothing and runs no script.
func (r Report) WritePage(w io.Writer) error {
	return htmlpage.Write(w, page, template.FuncMap{
		"seconds": seconds,
		"size":    func(b int64) string { return ui.Size(b) },
		"cells":   func(p NodePhase) []string { return append(p.cells(), p.wideCells()...) },
		"draw": func(n NodeReport) (all []drawing) {
			for _, c := range charts() {
				all = append(all, c.draw(n.Samples))
			}
			return all
		},
		"header": func() []string { return Columns(true)[1:] },
	}, r)
}

package verdict

import (
	_ "embed"
	"html/template"
	"io"
	"path"

	"github.com/swdt-dev/swdt/internal/ui/htmlpage"
)

//go:embed page.html
var page string

// WritePage writes the report as one page, which loads nothing and runs no script.
func (r Report) WritePage(w io.Writer) error {
	return htmlpage.Write(w, page, template.FuncMap{
		"join": path.Join, "duration": duration,
	}, r)
}

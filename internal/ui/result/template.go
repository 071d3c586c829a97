package result

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"text/template"

	"k8s.io/client-go/util/jsonpath"
)

// Formats of -o that are written FORMAT=TEMPLATE, as those of kubectl.
const (
	JSONPath      = "jsonpath"
	GoTemplate    = "go-template"
	CustomColumns = "custom-columns"
)

// Template writes parts of a document, which is given as the values that its JSON decodes to.
type Template interface {
	Execute(out io.Writer, document any) error
}

// TemplateFormats returns the formats that have a template, each with an example of one.
func TemplateFormats() []string {
	return []string{JSONPath + "=TEMPLATE", GoTemplate + "=TEMPLATE", CustomColumns + "=HEADER:PATH,…"}
}

// example returns a use of the format.
func example(format string) string {
	switch format {
	case GoTemplate:
		return `-o go-template='{{range .nodes}}{{.name}}{{"\n"}}{{end}}'`
	case CustomColumns:
		return "-o custom-columns=NODE:.name,ERROR:.error"
	}
	return "-o jsonpath='{.nodes[*].name}'"
}

// ParseTemplate parses a value of -o that has a template. It reports found == false for another format.
func ParseTemplate(value string) (format string, parsed Template, found bool, err error) {
	format, text, _ := strings.Cut(value, "=")
	if !slices.Contains([]string{JSONPath, GoTemplate, CustomColumns}, format) {
		return "", nil, false, nil
	}
	switch {
	case text == "":
		err = errors.New("write the template too")
	case format == GoTemplate:
		parsed, err = template.New("-o").Parse(text)
	case format == CustomColumns:
		parsed, err = parseColumns(text)
	default:
		parsed, err = parsePath(text)
	}
	if err != nil {
		return format, nil, true, fmt.Errorf("-o %s: %w; write it as in %s", value, err, example(format))
	}
	return format, parsed, true, nil
}

// parsePath parses a JSONPath as kubectl does; the braces are optional.
func parsePath(text string) (*jsonpath.JSONPath, error) {
	if !strings.ContainsAny(text, "{}") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	path := jsonpath.New("-o").AllowMissingKeys(true)
	return path, path.Parse(text)
}

// columns is a table with a row for each node of a document, or for the document itself if it has no nodes.
type columns struct {
	headers []string
	paths   []*jsonpath.JSONPath

	bare  bool         // no header
	begun *atomic.Bool // a record was written, with the header
}

// ofRecord returns the table of one of several records: the first has the header.
func (c columns) ofRecord() columns {
	c.bare = c.begun.Swap(true)
	return c
}

func parseColumns(text string) (c columns, err error) {
	c.begun = new(atomic.Bool)
	for column := range strings.SplitSeq(text, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return c, fmt.Errorf("%q is no HEADER:PATH", column)
		}
		parsed, err := parsePath(path)
		if err != nil {
			return c, err
		}
		c.headers, c.paths = append(c.headers, header), append(c.paths, parsed)
	}
	return c, nil
}

// Execute implements Template.
func (c columns) Execute(out io.Writer, document any) error {
	rows := []any{document}
	if root, ok := document.(map[string]any); ok {
		if nodes, ok := root["nodes"].([]any); ok {
			rows = nodes
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if !c.bare {
		fmt.Fprintln(table, strings.Join(c.headers, "\t"))
	}
	for _, row := range rows {
		cells := make([]string, len(c.paths))
		for i, path := range c.paths {
			found, err := path.FindResults(row)
			if err != nil {
				return err
			}
			cells[i] = cell(found)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// cell returns the values that a path has found, as kubectl prints them.
func cell(found [][]reflect.Value) string {
	var texts []string
	for _, values := range found {
		for _, value := range values {
			texts = append(texts, fmt.Sprint(value.Interface()))
		}
	}
	if text := strings.Join(texts, ","); text != "" {
		return text
	}
	return "<none>"
}

package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Format is the format of a result. It is a flag value.
type Format string

const (
	Text Format = "text"
	JSON Format = "json"
	YAML Format = "yaml"
)

// Formats returns the formats of a result.
func Formats() []Format { return []Format{Text, JSON, YAML} }

func (f *Format) String() string { return string(*f) }

// Type names the values in a flag's usage text.
func (f *Format) Type() string { return "text|json|yaml" }

// Set sets the format to a flag's value.
func (f *Format) Set(value string) error {
	if !slices.Contains(Formats(), Format(value)) {
		return fmt.Errorf("%q is not a format: use text, json or yaml", value)
	}
	*f = Format(value)
	return nil
}

// Print writes a command's result to stdout: one JSON or YAML document with the names of
// value's json tags, or the output of text, as a PrintableWriter shows it.
func Print(w io.Writer, format Format, value any, text func(io.Writer) error) error {
	switch format {
	case JSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case YAML:
		out, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("write the result as YAML: %w", err)
		}
		_, err = w.Write(out)
		return err
	}
	shown := NewPrintableWriter(w)
	return errors.Join(text(shown), shown.Flush())
}

// Table writes rows below a header, columns aligned, two spaces apart. An empty
// cell is written as -.
func Table(w io.Writer, header []string, rows [][]string) error {
	all := [][]string{header}
	for _, row := range rows {
		filled := make([]string, len(row))
		for i, cell := range row {
			filled[i] = cmp.Or(cell, "-")
		}
		all = append(all, filled)
	}
	return Lines(w, all)
}

// TableOr is like Table, but without rows it writes the line nothing, since a header alone
// would not show whether anything was checked.
func TableOr(w io.Writer, nothing string, header []string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, nothing)
		return err
	}
	return Table(w, header, rows)
}

// Lines writes rows with their columns aligned, two spaces apart; empty cells at the end
// of a row take no room. A cell is Printable: it has one line.
func Lines(w io.Writer, rows [][]string) error {
	var widths []int
	printable := make([][]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			cell = Printable(cell)
			printable[n] = append(printable[n], cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	var out strings.Builder
	for _, row := range printable {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-width(cell)+2))
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Package result writes the results of commands for programs: documents as JSON or YAML, parts of
// them, and the names in them. The types of the documents belong to the packages that do the work.
//
//   - result.go: the formats, and a Writer of documents
//   - template.go: the formats that select parts of a document
//   - sort.go: the order of the rows of a document
//   - lists.go: [] and {} instead of null
package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	jsonutil "k8s.io/apimachinery/pkg/util/json"
)

// Formats of -o with the same meaning for every command.
const (
	Text = "text"
	Wide = "wide" // text with more columns
	JSON = "json"
	YAML = "yaml"
	Name = "name"
)

// Namer is a document for which -o name lists objects other than its nodes.
type Namer interface {
	Names() []string // KIND/NAME
}

// Writer writes documents in one format. The default of Format is JSON.
type Writer struct {
	Format string
	// Template is the parsed template, if the format has one; see ParseTemplate. nil: it has none.
	Template Template
	// Sorter sorts the rows of each document.
	Sorter Sorter
}

// Write writes one document. It writes JSON indented, on several lines.
func (w Writer) Write(out io.Writer, document any) error {
	if w.Format == Name {
		document = withLists(document)
		return errors.Join(w.Sorter.sort(document), writeNames(out, document))
	}
	return w.encode(out, document, "  ")
}

// WriteRecord writes one of several documents, with a single call of out.Write. It writes
// a line of JSON, a YAML document, or a line with the values that a template selects. A table has its header once, above
// the first record.
func (w Writer) WriteRecord(out io.Writer, record any) error {
	if table, is := w.Template.(columns); is {
		w.Template = table.ofRecord()
	}
	var text bytes.Buffer
	if w.Format == YAML {
		text.WriteString("---\n")
	}
	if err := w.encode(&text, record, ""); err != nil {
		return err
	}
	if w.Template != nil && !bytes.HasSuffix(text.Bytes(), []byte("\n")) {
		text.WriteByte('\n')
	}
	_, err := text.WriteTo(out)
	return err
}

// encode writes one document; JSON takes several lines if indent is not empty.
func (w Writer) encode(out io.Writer, document any, indent string) error {
	document = withLists(document)
	if err := w.Sorter.sort(document); err != nil {
		return err
	}
	switch {
	case w.Template != nil:
		return w.fill(out, document)
	case w.Format == YAML:
		text, err := yaml.Marshal(document)
		if err != nil {
			return fmt.Errorf("write the result as YAML: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(document)
}

// fill writes the document's values into the template.
func (w Writer) fill(out io.Writer, document any) error {
	var text bytes.Buffer
	value, err := plain(document)
	if err == nil {
		err = w.Template.Execute(&text, value)
	}
	if err != nil {
		return fmt.Errorf("-o %s: %w", w.Format, err)
	}
	_, err = text.WriteTo(out)
	return err
}

// HasNames reports whether Write can write a document in the format Name.
func HasNames(document any) bool {
	if _, ok := document.(Namer); ok {
		return true
	}
	t := reflect.TypeOf(document)
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == "nodes" {
			return true
		}
	}
	return false
}

// writeNames lists the objects of a document, one KIND/NAME per line.
func writeNames(out io.Writer, document any) error {
	var all []string
	if own, ok := document.(Namer); ok {
		all = own.Names()
	} else {
		value, err := plain(document)
		if err != nil {
			return err
		}
		all = nodeNames(value)
	}
	for _, name := range all {
		if _, err := fmt.Fprintln(out, name); err != nil {
			return err
		}
	}
	return nil
}

// nodeNames returns the nodes that did not fail.
func nodeNames(document any) (all []string) {
	root, _ := document.(map[string]any)
	nodes, _ := root["nodes"].([]any)
	for _, value := range nodes {
		node, _ := value.(map[string]any)
		if name, ok := node["name"].(string); ok && (node["error"] == "" || node["error"] == nil) {
			all = append(all, "node/"+name)
		}
	}
	return all
}

// plain encodes document as JSON, and returns the generic values to which this JSON decodes.
func plain(document any) (value any, err error) {
	text, err := json.Marshal(document)
	if err == nil {
		err = jsonutil.Unmarshal(text, &value)
	}
	return value, err
}

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	jsonutil "k8s.io/apimachinery/pkg/util/json"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Formats of -o with the same meaning for every command.
const (
	formatText     = "text"
	formatWide     = "wide"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatName     = "name"
	formatJSONPath = "jsonpath"
)

// output declares what a command prints on stdout. The formats of -o and the schema in
// docs/reference/results follow from it.
type output struct {
	// document is a zero value of the type that -o json prints; nil: the command
	// has no document.
	document any
	// records reports whether documents are printed one by one as they arrive, instead
	// of one document at the end.
	records bool
	// modes are the documents that the command prints instead with certain flags.
	modes []mode
	// wide reports whether -o wide prints more columns.
	wide bool
	// formats are formats that only this command has, such as svg. If there is no document,
	// the first of them is the default.
	formats []string
}

// mode is an alternative document of a command.
type mode struct {
	flags    string // "--preflight"
	document any
	records  bool
}

// namer is a document whose -o name lists objects other than its nodes.
type namer interface{ Names() []string }

// all returns the formats that the command can print; the first is the default.
func (o output) all() []string {
	if o.document == nil {
		return o.formats
	}
	all := []string{formatText}
	if o.wide {
		all = append(all, formatWide)
	}
	all = append(all, formatJSON, formatYAML)
	if _, ok := o.document.(namer); !o.records && (ok || hasNodes(o.document)) {
		all = append(all, formatName)
	}
	return append(append(all, formatJSONPath+"=TEMPLATE"), o.formats...)
}

func hasNodes(document any) bool {
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

// frame has the fields that begin every node's part of a result.
type frame = fleet.Outcome

// Results of a node that several commands report.
const (
	resultOK        = fleet.OK
	resultChanged   = fleet.Changed
	resultUnchanged = fleet.Unchanged
	resultFailed    = fleet.Failed
)

func newFrame(name, result string, err error) frame { return fleet.NewOutcome(name, result, err) }

// printer prints the result of one command in the format that -o asks for.
type printer struct {
	declared output
	format   string
	path     *jsonpath.JSONPath // of -o jsonpath=
	streams  ui.Streams
	colour   bool
}

// orNone returns all, or an empty slice for nil, so that JSON has [] instead of null.
func orNone[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// outputOf returns what a command declares, and false if it declares nothing.
func outputOf(cmd *cobra.Command) (output, bool) {
	_, path, _ := strings.Cut(strings.TrimPrefix(cmd.CommandPath(), "kubectl "), " ")
	o, ok := outputs()[path]
	return o, ok
}

// chooseFormat checks -o against the command's declaration before the command runs.
func (a *app) chooseFormat(cmd *cobra.Command) error {
	declared, _ := outputOf(cmd)
	p := &printer{declared: declared, format: a.global.output, streams: a.streams, colour: a.hasColour(a.streams.Out)}
	a.printer = p
	known := declared.all()
	template, isPath := strings.CutPrefix(p.format, formatJSONPath+"=")
	switch {
	case !cmd.Flags().Changed("output"):
		p.format = cmp.Or(append(known, formatText)...)
		return nil
	case isPath && declared.document != nil:
		p.format = formatJSONPath
		var err error
		p.path, err = parsePath(template)
		return err
	case p.format == formatJSONPath && declared.document != nil:
		return usagef("-o jsonpath: write the template too, as in -o jsonpath='{.nodes[*].name}'")
	case slices.Contains(known, p.format):
		return nil
	}
	if long := a.longWithOneDash(cmd); strings.HasPrefix(long, "o") {
		return usagef("-%s has one dash; did you mean --%s?", long, long)
	}
	return wrongFormat(cmd, p.format, known)
}

// parsePath parses a template as kubectl does; the braces are optional.
func parsePath(template string) (*jsonpath.JSONPath, error) {
	if !strings.ContainsAny(template, "{}") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	path := jsonpath.New("-o").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, usagef("-o jsonpath=%s: %v; write it as in -o jsonpath='{.nodes[*].name}'", template, err)
	}
	return path, nil
}

func wrongFormat(cmd *cobra.Command, format string, known []string) error {
	path := cmd.CommandPath()
	switch {
	case cmd.Flags().Lookup("out") != nil && strings.ContainsAny(format, `./\-`):
		return usagef("-o %s: -o is the format of the result (%s); the file to write is --out %s, or -w %s",
			format, strings.Join(known, ", "), format, format)
	case len(known) == 0:
		return usagef("-o %s: %s prints no result that has formats: leave -o out", format, path)
	case strings.ContainsAny(format, `./\`) || filepath.Ext(format) != "":
		return usagef("-o %s: -o is the format of the result; %s prints %s: to write it to a file use > %s",
			format, path, ui.Alternatives(known), format)
	}
	if similar := closest(format, known); similar != "" && len(known) > 1 {
		return usagef("-o %s: %s prints %s; did you mean %s?", format, path, ui.Alternatives(known), similar)
	}
	return usagef("-o %s: %s prints %s", format, path, ui.Alternatives(known))
}

// inText reports whether the result is printed for people to read.
func (a *app) inText() bool {
	return a.printer.format == formatText || a.printer.format == formatWide
}

// format returns the format that -o asks for, or the command's default.
func (a *app) format() string { return a.printer.format }

// page returns stdout for text that people read.
func (a *app) page() *ui.Page {
	page := ui.NewPage(a.streams.Out, a.printer.colour)
	page.Wide = a.printer.format == formatWide
	page.Rewrite = func(text string) string { return a.remedies("", text) }
	return page
}

// print prints the result of a command: document, or the output of text. The type of
// document must be the one that the command declares.
func (a *app) print(document any, text func(*ui.Page) error) error {
	if a.inText() {
		page := a.page()
		return errors.Join(text(page), page.Flush())
	}
	if err := a.printer.declaredType(document, false); err != nil {
		return err
	}
	if a.printer.format == formatName {
		return a.printer.printNames(document)
	}
	return a.printer.encode(a.streams.Out, document, "  ")
}

// declaredType rejects a document that the command does not declare, since its schema
// would be wrong.
func (p *printer) declaredType(document any, records bool) error {
	got := reflect.TypeOf(document)
	for _, m := range append(p.declared.modes, mode{document: p.declared.document, records: p.declared.records}) {
		if reflect.TypeOf(m.document) == got && m.records == records {
			return nil
		}
	}
	return fmt.Errorf("print the result: the command does not declare a %s; this is a mistake in swdt, please report it", got)
}

// encode writes one document; JSON takes several lines if indent is not empty.
func (p *printer) encode(w io.Writer, document any, indent string) error {
	document = withLists(document)
	switch p.format {
	case formatYAML:
		out, err := yaml.Marshal(document)
		if err != nil {
			return fmt.Errorf("write the result as YAML: %w", err)
		}
		_, err = w.Write(out)
		return err
	case formatJSONPath:
		return p.printPath(w, document)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(document)
}

func (p *printer) printPath(w io.Writer, document any) error {
	var out bytes.Buffer
	value, err := plain(document)
	if err == nil {
		err = p.path.Execute(&out, value)
	}
	if err != nil {
		return fmt.Errorf("-o jsonpath: %w", err)
	}
	_, err = out.WriteTo(w)
	return err
}

// plain returns document as the generic values that its JSON decodes to.
func plain(document any) (value any, err error) {
	text, err := json.Marshal(document)
	if err == nil {
		err = jsonutil.Unmarshal(text, &value)
	}
	return value, err
}

// printNames lists the objects of a document, one KIND/NAME per line.
func (p *printer) printNames(document any) error {
	var all []string
	if own, ok := document.(namer); ok {
		all = own.Names()
	} else {
		value, err := plain(document)
		if err != nil {
			return err
		}
		all = nodeNames(value)
	}
	for _, name := range all {
		if _, err := fmt.Fprintln(p.streams.Out, name); err != nil {
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

// records prints documents as they arrive: each as a line of JSON, a YAML document, or
// a line with the selection of -o jsonpath.
type records struct {
	printer *printer
	out     io.Writer
}

func (a *app) records(out io.Writer) *records { return &records{printer: a.printer, out: out} }

// write prints one record with a single call of Write.
func (r *records) write(record any) error {
	if err := r.printer.declaredType(record, true); err != nil {
		return err
	}
	var text bytes.Buffer
	if r.printer.format == formatYAML {
		text.WriteString("---\n")
	}
	if err := r.printer.encode(&text, record, ""); err != nil {
		return err
	}
	if r.printer.format == formatJSONPath {
		text.WriteByte('\n')
	}
	_, err := text.WriteTo(r.out)
	return err
}

// Result describes what a command prints on stdout.
type Result struct {
	// Command is the command's name without swdt: "hns networks".
	Command string
	// Formats of -o, the default first.
	Formats []string
	// Type of the document that -o json prints; nil: there is none.
	Type reflect.Type
	// Records reports whether documents are printed one by one as they arrive.
	Records bool
	// Flags that make the command print this document instead: "--watch".
	Flags string
	// Declared reports whether the command is in the table of outputs.
	Declared bool
	// Hidden reports whether the command is not shown in help.
	Hidden bool
}

// SchemaFile returns the name of the file in docs/reference/results that has the schema of
// the result.
func (r Result) SchemaFile() string {
	var words []string
	for _, word := range strings.Fields(r.Command + " " + r.Flags) {
		words = append(words, strings.ToLower(strings.TrimLeft(word, "-")))
	}
	return cmp.Or(strings.Join(words, "-"), "version") + ".json"
}

// Results lists all runnable commands with what they print, in the order of help. For
// a command that declares nothing, the Result has no formats.
func Results() []Result {
	a := &app{env: Environment{}.complete()}
	return a.results(a.rootCommand())
}

func (a *app) results(cmd *cobra.Command) (all []Result) {
	declared, ok := outputOf(cmd)
	if ok || cmd.Runnable() && !cmd.HasSubCommands() {
		r := Result{Declared: ok, Formats: declared.all(), Records: declared.records, Hidden: cmd.Hidden || cmd.HasParent() && cmd.Parent().Hidden}
		_, r.Command, _ = strings.Cut(cmd.CommandPath(), " ")
		if declared.document != nil {
			r.Type = reflect.TypeOf(declared.document)
		}
		all = append(all, r)
		for _, m := range declared.modes {
			r.Flags, r.Type, r.Records = m.flags, reflect.TypeOf(m.document), m.records
			all = append(all, r)
		}
	}
	for _, child := range inReadingOrder(cmd.Commands()) {
		all = append(all, a.results(child)...)
	}
	return all
}

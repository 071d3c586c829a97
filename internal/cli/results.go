package cli

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/order"
	"github.com/swdt-dev/swdt/internal/ui/result"
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
	// modes are the documents that the command prints instead of document if certain flags
	// are set.
	modes []mode
	// columns returns the columns of the table of one node in text or, if wide is true, in -o wide; a command without
	// columns has no --sort-by.
	columns func(wide bool) []string
	// oneTable reports whether the table has these columns for any number of nodes. Without it, the table of several nodes
	// has a column NODE before them.
	oneTable bool
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

// all returns the formats that the command can print; the first is the default.
func (o output) all() []string {
	if o.document == nil {
		return o.formats
	}
	all := []string{result.Text}
	if o.wide {
		all = append(all, result.Wide)
	}
	all = append(all, result.JSON, result.YAML)
	if !o.records && result.HasNames(o.document) {
		all = append(all, result.Name)
	}
	return slices.Concat(all, result.TemplateFormats(), o.formats)
}

// printer prints the result of one command in the format that -o asks for.
type printer struct {
	result.Writer
	declared output
	colour   bool
	order    order.Choice // of the rows of tables
}

// outputOf returns what a command declares, and false if it declares nothing.
func outputOf(cmd *cobra.Command) (output, bool) {
	o, ok := outputs()[pathBelow(cmd)]
	return o, ok
}

// chooseResult checks -o and --sort-by before the command runs.
func (a *app) chooseResult(cmd *cobra.Command) error {
	if err := a.chooseFormat(cmd); err != nil {
		return err
	}
	return a.chooseOrder(cmd)
}

// chooseFormat checks -o against the command's declaration before the command runs.
func (a *app) chooseFormat(cmd *cobra.Command) error {
	declared, _ := outputOf(cmd)
	p := &printer{declared: declared, Writer: result.Writer{Format: a.global.output},
		colour: a.hasColour(a.streams.Out)}
	a.printer = p
	known := declared.all()
	format, template, isTemplate, err := result.ParseTemplate(p.Format)
	switch {
	case !cmd.Flags().Changed("output"):
		p.Format = cmp.Or(append(known, result.Text)...)
		return nil
	case isTemplate && declared.document != nil && err != nil:
		return usagef("%v", err)
	case isTemplate && declared.document != nil:
		p.Format, p.Template = format, template
		return nil
	case slices.Contains(known, p.Format):
		return nil
	}
	if long := a.longWithOneDash(cmd); strings.HasPrefix(long, "o") {
		return usagef("-%s has one dash; did you mean --%s?", long, long)
	}
	return wrongFormat(cmd, p.Format, known)
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
	return a.printer.Format == result.Text || a.printer.Format == result.Wide
}

// format returns the format that -o asks for, or the command's default.
func (a *app) format() string { return a.printer.Format }

// page returns stdout for text that people read.
func (a *app) page() *ui.Page {
	return a.pageTo(a.streams.Out)
}

// pageTo is like page, for text that is collected first.
func (a *app) pageTo(out io.Writer) *ui.Page {
	page := ui.NewPage(out, a.printer.colour)
	page.Wide, page.Sort = a.printer.Format == result.Wide, a.printer.order
	page.Rewrite = func(text string) string { return a.remedies("", text) }
	return page
}

// print prints the result of a command. If the format is for people, it calls text to write the
// page. For any other format, it prints document, whose type the command must have declared.
func (a *app) print(document any, text func(*ui.Page) error) error {
	if a.inText() {
		return asWrongColumn(a.paged(a.pageTo, text))
	}
	if err := a.printer.declaredType(document, false); err != nil {
		return err
	}
	return a.printer.Write(a.streams.Out, document)
}

// declaredType rejects a document that the command does not declare, since the command's schema
// would be wrong.
func (p *printer) declaredType(document any, records bool) error {
	got := reflect.TypeOf(document)
	for _, m := range append(p.declared.modes, mode{document: p.declared.document, records: p.declared.records}) {
		if reflect.TypeOf(m.document) == got && m.records == records {
			return nil
		}
	}
	return fmt.Errorf("print the result: the command does not declare a %s; "+
		"this is a mistake in swdt, please report it", got)
}

// records prints documents as they arrive. The format of -o decides what a document becomes:
// a line of JSON, a YAML document, or the parts that a template selects.
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
	return r.printer.WriteRecord(r.out, record)
}

// Result describes what a command prints on stdout.
type Result struct {
	// Command is the command's name without swdt, such as "hns networks".
	Command string
	// Formats are the values of -o, the default first.
	Formats []string
	// Type is the type of the document that -o json prints; nil: the command has no document.
	Type reflect.Type
	// Records reports whether documents are printed one by one as they arrive.
	Records bool
	// Flags are the flags with which the command prints this document instead of its usual
	// one, such as "--watch".
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

// Commands returns the arguments of every command that help lists, in the order of help. The first
// one is the empty list, which is swdt itself.
func Commands() (all [][]string) {
	a := &app{env: Environment{}.complete()}
	return commandsBelow(a.rootCommand())
}

// Tree returns the commands of swdt with their flags and help, for generated pages. It runs none of them.
func Tree() *cobra.Command {
	a := &app{env: Environment{}.complete()}
	root := a.rootCommand()
	namePrograms(root)
	return root
}

// Below returns the commands directly below cmd, in the order of help.
func Below(cmd *cobra.Command) []*cobra.Command { return inReadingOrder(cmd.Commands()) }

// namePrograms completes the examples of a command and of all commands below it.
func namePrograms(cmd *cobra.Command) {
	cmd.Example = exampleOf(cmd)
	for _, child := range cmd.Commands() {
		namePrograms(child)
	}
}

func commandsBelow(cmd *cobra.Command) (all [][]string) {
	all = append(all, strings.Fields(cmd.CommandPath())[1:])
	for _, child := range inReadingOrder(cmd.Commands()) {
		if !child.Hidden {
			all = append(all, commandsBelow(child)...)
		}
	}
	return all
}

func (a *app) results(cmd *cobra.Command) (all []Result) {
	declared, ok := outputOf(cmd)
	if ok || cmd.Runnable() && !cmd.HasSubCommands() {
		r := Result{Declared: ok, Formats: declared.all(), Records: declared.records, Hidden: cmd.Hidden ||
			cmd.HasParent() && cmd.Parent().Hidden}
		r.Command = pathBelow(cmd)
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

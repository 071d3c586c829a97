package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/swdt-dev/swdt/internal/cli"
)

// resultPages returns a page with the schema of each command's document, and the page that lists
// the commands with their schemas. The keys are file names. It leaves out hidden results.
func resultPages() (map[string][]byte, error) {
	pages := map[string][]byte{}
	var page bytes.Buffer
	page.WriteString("# Results\n\n" + generated + resultsIntroduction)
	for _, result := range cli.Results() {
		if result.Hidden {
			continue
		}
		file, formats := "", strings.Join(result.Formats, ", ")
		if result.Type != nil {
			file = result.SchemaFile()
			schema, err := resultSchema(result)
			if err != nil {
				return nil, fmt.Errorf("the schema of swdt %s: %w", result.Command, err)
			}
			pages["results/"+file] = schema
		}
		writeResultRow(&page, result, formats, file)
	}
	pages["results.md"] = page.Bytes()
	return pages, nil
}

const resultsIntroduction = `A command prints its result on stdout, in the format that ` + "`-o`" +
	` asks for. It reports
its progress on stderr.

| format | |
|---|---|
| ` + "`text`" + ` | for people; the default |
| ` + "`wide`" + ` | with more columns, such as whole IDs; a command that has no further columns refuses this format |
| ` + "`json`, `yaml`" + ` | one document; from a command that keeps running, one line of JSON or one YAML document a record |
| ` + "`name`" + ` | KIND/NAME, one a line |
| ` + "`jsonpath=TEMPLATE`" + ` | what a [JSONPath template]` +
	`(https://kubernetes.io/docs/reference/kubectl/jsonpath/) selects: ` + "`-o jsonpath='{.nodes[*].name}'`" + ` |
| ` + "`go-template=TEMPLATE`" + ` | what a [Go template](https://pkg.go.dev/text/template) makes of it: ` +
	"`-o go-template='{{range .nodes}}{{.name}} {{end}}'`" + ` |
| ` + "`custom-columns=HEADER:PATH,…`" + ` | a table with a row for each node, or one row if the document has no nodes: ` +
	"`-o custom-columns=NODE:.name,ERROR:.error`" + ` |

The document of a command that works on nodes has the same frame for one node and for many:

    {"nodes": [{"name": "win-1", "result": "ok", "error": ""}]}

` + "`error`" + ` says why the command failed on the node, ` +
	"and `result` is then `failed`" + `. Both are always
there. A field without a value is ` + "`\"\"`, `0`, `[]` or `null`" + `, as its schema says.

| command | formats | schema |
|---|---|---|
`

func writeResultRow(page *bytes.Buffer, result cli.Result, formats, file string) {
	schema := ""
	if file != "" {
		schema = fmt.Sprintf("[%s](results/%s)", file, file)
		if result.Records {
			schema += ", of each record"
		}
	}
	name := strings.TrimSpace("swdt " + result.Command + " " + result.Flags)
	fmt.Fprintf(page, "| `%s` | %s | %s |\n", name, formats, schema)
}

func resultSchema(result cli.Result) ([]byte, error) {
	schema, err := jsonschema.ForType(result.Type,
		&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[json.RawMessage](): {},
			reflect.TypeFor[netip.Addr]():      {Type: "string", Description: "an IP address"},
			reflect.TypeFor[time.Duration]():   {Type: "integer", Description: "nanoseconds"},
		}})
	if err != nil {
		return nil, err
	}
	neverNull(schema)
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.Title = strings.TrimSpace("swdt " + result.Command + " " + result.Flags)
	out, err := json.MarshalIndent(schema, "", "  ")
	return append(out, '\n'), err
}

// neverNull removes null from the types of lists and maps, since the command line prints [] and {}
// for empty lists and maps. In the printed documents, only Go pointers can be null.
func neverNull(schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	if slices.Contains(schema.Types, "array") || slices.Contains(schema.Types, "object") &&
		schema.AdditionalProperties != nil && schema.Properties == nil {
		schema.Types = slices.DeleteFunc(schema.Types, func(kind string) bool { return kind == "null" })
	}
	if len(schema.Types) == 1 {
		schema.Type, schema.Types = schema.Types[0], nil
	}
	neverNull(schema.Items)
	neverNull(schema.AdditionalProperties)
	for _, property := range schema.Properties {
		neverNull(property)
	}
	for _, definition := range schema.Defs {
		neverNull(definition)
	}
}

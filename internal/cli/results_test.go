package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/swdt-dev/swdt/internal/cli"
)

// schemas is where the generated schemas are.
const schemas = "../../docs/reference/results"

// Every command declares what it prints, has a schema where it prints documents, and
// has its output compared with that in results.txtar.
func TestEveryCommandHasASchemaThatIsHeld(t *testing.T) {
	script, err := os.ReadFile("testdata/script/results.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range cli.Results() {
		switch {
		case !result.Declared:
			t.Errorf("swdt %s declares nothing in outputs.go", result.Command)
		case result.Type == nil || result.Hidden:
		default:
			if _, err := os.Stat(filepath.Join(schemas, result.SchemaFile())); err != nil {
				t.Errorf("swdt %s has no schema; run make generate: %v", result.Command, err)
			}
			held := strings.Contains(string(script), "\nmatches "+result.SchemaFile()+" ") || strings.Contains(string(script), "\n# "+result.SchemaFile()+": ")
			if !held {
				t.Errorf("no line of results.txtar runs swdt %s and compares it with %s", result.Command, result.SchemaFile())
			}
		}
	}
}

// The part of each node begins with its name, its result and its error, all of which
// are always there.
func TestEveryNodeHasTheSameFrame(t *testing.T) {
	for _, result := range cli.Results() {
		if result.Type == nil || result.Hidden {
			continue
		}
		text, err := os.ReadFile(filepath.Join(schemas, result.SchemaFile()))
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties struct {
				Nodes *struct{ Items struct{ Required []string } }
			}
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.Properties.Nodes == nil {
			continue
		}
		for _, field := range []string{"name", "result", "error"} {
			if !strings.Contains(" "+strings.Join(schema.Properties.Nodes.Items.Required, " ")+" ", " "+field+" ") {
				t.Errorf("swdt %s %s: its nodes need not have %s", result.Command, result.Flags, field)
			}
		}
	}
}

// matches SCHEMA ARG… runs swdt with -o json, also where it fails on a node, and
// compares what it prints with the schema.
func matches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: matches SCHEMA ARG…")
	}
	// Its error is one that its document tells.
	_ = ts.Exec("swdt", append(args[1:], "-o", "json")...)
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	schema, err := jsonschema.NewCompiler().Compile(schemaPath(ts, args[0]))
	ts.Check(err)
	documents := 0
	for ; ; documents++ {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		if err := schema.Validate(document); err != nil {
			ts.Fatalf("swdt %s: %v", strings.Join(args[1:], " "), err)
		}
	}
	if documents == 0 {
		ts.Fatalf("swdt %s printed nothing", strings.Join(args[1:], " "))
	}
}

// schemaPath is absolute: a script has a folder of its own.
func schemaPath(ts *testscript.TestScript, name string) string {
	path, err := filepath.Abs(filepath.Join(schemas, name))
	ts.Check(err)
	return path
}

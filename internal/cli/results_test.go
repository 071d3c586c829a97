package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/disc"
)

// schemas is the folder of the generated schemas.
const schemas = "../../docs/reference/results"

// scripts returns the text of all scripts.
func scripts(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// Every command declares what it prints and has a schema if it prints documents, and a
// script compares its output with that schema.
func TestEveryCommandHasASchemaThatIsHeld(t *testing.T) {
	script := scripts(t)
	for _, result := range cli.Results() {
		file := result.SchemaFile()
		other, elsewhere := comparedElsewhere()[file]
		switch {
		case !result.Declared:
			t.Errorf("swdt %s declares nothing in outputs.go", result.Command)
		case result.Type == nil || result.Hidden:
		default:
			if _, err := os.Stat(filepath.Join(schemas, file)); err != nil {
				t.Errorf("swdt %s has no schema; run make generate: %v", result.Command, err)
			}
			inScript := strings.Contains(script, "\nmatches "+file+" ")
			if inScript == elsewhere {
				t.Errorf("swdt %s must be compared with %s by a line of a script or by a test of "+
					"comparedElsewhere, and not by both", result.Command, file)
			}
			if elsewhere {
				t.Run(file, other)
			}
		}
	}
}

// comparedElsewhere returns the schemas that a script cannot compare with a command's
// output, each with the test that does.
func comparedElsewhere() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"push-watch.json":       watchPrintsItsSchema, // it has no end for which a script could wait
		"status-watch.json":     statusWatchFitsItsSchema,
		"forward.json":          forwardFitsItsSchema, // so has this
		"attach.json":           attachFitsItsSchema,
		"rdp.json":              forwardReportFits("rdp.json"),
		"vm-image-inspect.json": inspectPrintsItsSchema, // it needs an ISO
		"netpol-run.json":       netpolRunFitsItsSchema, // it needs pods that run; a script has its failure
		// a cluster in memory has no rollouts
		"fleet-status.json": rolloutsFit("status"), "fleet-watch.json": rolloutsFit("watch"), "fleet-pause.json": rolloutsFit("pause"),
		"fleet-resume.json": rolloutsFit("resume"), "fleet-abort.json": rolloutsFit("abort"),
		"fleet-rollback.json": rolloutsFit("rollback"),
		// these need a network of their own
		"vm-network-check.json":   networkPrints("vm-network-check.json"),
		"vm-network-prepare.json": networkPrints("vm-network-prepare.json"),
		"vm-network-remove.json":  networkPrints("vm-network-remove.json"),
	}
}

func netpolRunFitsItsSchema(t *testing.T) {
	text, err := json.Marshal(netpol.Report{Result: netpol.Differs, Limits: []netpol.Limit{{Network: "Calico"}}, Pods: []netpol.PodReport{{Name: "x/a"}},
		Ports: []string{"TCP/80"}, Unsupported: []string{}, Leftovers: []string{}, Cases: []netpol.CaseReport{{
			Name: "policies", Policies: []string{"x/deny"}, Tables: []netpol.Table{{Ports: []string{"TCP/80"}, Rows: []string{"-"}}}, LeftOut: []netpol.LeftOut{},
			Differences: []netpol.Difference{{From: "x/a", To: "x/b", Policies: []string{}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, "netpol-run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := documentsThatFit(schema, string(text)); err != nil || n != 1 {
		t.Errorf("%d documents: %v:\n%s", n, err, text)
	}
}

func inspectPrintsItsSchema(t *testing.T) {
	image, err := disc.New("VIRTIO_WIN", time.Unix(0, 0))
	if err == nil {
		err = image.Add("viostor/2k22/amd64/viostor.inf", []byte("driver"))
	}
	var iso bytes.Buffer
	if err == nil {
		_, err = image.WriteTo(&iso)
	}
	path := filepath.Join(t.TempDir(), "virtio-win.iso")
	if err == nil {
		err = os.WriteFile(path, iso.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	streams := ui.Streams{Out: &stdout, Err: &stderr}
	args := []string{"vm", "image", "inspect", path, "--hash", "-o", "json"}
	if code := cli.Run(t.Context(), streams, args, cli.Environment{}); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, "vm-image-inspect.json"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := documentsThatFit(schema, stdout.String()); err != nil || n != 1 {
		t.Errorf("%d documents: %v:\n%s", n, err, stdout.String())
	}
}

func watchPrintsItsSchema(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.watch("-o", "json")
	run.stdout.await(t, `(?m)^\{.*\}$`, 1)
	w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.1"})
	run.stdout.await(t, `(?m)^\{.*"after":"1.0.1".*\}$`, 1)
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, "push-watch.json"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := documentsThatFit(schema, run.stdout.String()); err != nil || n < 2 {
		t.Errorf("%d documents: %v:\n%s", n, err, run.stdout)
	}
}

// The part of each node begins with its name, its result and its error, which are
// always present.
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

// A field of a result is always present, so that a reader need not distinguish a missing
// field from an empty one.
func TestNoFieldOfAResultIsLeftOut(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, result := range cli.Results() {
		if result.Type != nil && !result.Hidden {
			refuseOptional(t, "swdt "+result.Command+" "+result.Flags, result.Type, seen)
		}
	}
}

func refuseOptional(t *testing.T, where string, of reflect.Type, seen map[reflect.Type]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		refuseOptional(t, where, of.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[of] {
		return
	}
	seen[of] = true
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if strings.Contains(options, "omit") {
			t.Errorf("%s: %s.%s is %s", where, of, field.Name, options)
		}
		refuseOptional(t, where, field.Type, seen)
	}
}

// Every command with -o wide prints more with it.
func TestEveryWideTableIsWider(t *testing.T) {
	script := scripts(t)
	for _, result := range cli.Results() {
		offered, compared := slices.Contains(result.Formats, "wide"),
			strings.Contains(script, "\nwider "+result.Command+"\n")
		switch result.Command {
		case "doctor", "hns loadbalancers", "network services": // the sandbox has too few objects; their packages test that
			continue
		case "cluster check": // it fails in a sandbox, which has no scheduler; cluster-check.txtar compares it
			continue
		case "e2e", "e2e list", "e2e compare": // they need arguments; e2e.txtar compares them
			continue
		case "scale run", "scale report", "scale compare": // they need a run; scale.txtar compares them
			continue
		case "readiness run", "readiness report": // they need a cluster; readiness-run.txtar compares them
			continue
		case "selftest": // -o wide adds a table of differences; selftest.txtar compares it
			continue
		case "upgrade check": // it needs a version; upgrade-check.txtar compares it
			continue
		case "image check", "image list", "image pull": // it needs a registry; image.txtar compares it
			continue
		case "lint": // it needs a file; lint.txtar compares it
			continue
		case "doctor compare", "stats soak": // they need two nodes, or a recording; doctor-compare.txtar and stats.txtar compare them
			continue
		case "netpol run": // it needs pods that run; package netpol compares it
			continue
		}
		if result.Command != "" && offered != compared {
			t.Errorf("swdt %s offers -o wide: %t; a script compares it: %t", result.Command, offered, compared)
		}
	}
}

// TestEveryWideTableCanBeSorted requires --sort-by of each command with -o wide, except of pages with rows of several
// kinds.
func TestEveryWideTableCanBeSorted(t *testing.T) {
	severalKinds := []string{"doctor", "doctor compare", "lint", "upgrade check", "network services", "netpol run", "selftest"}
	for _, result := range cli.Results() {
		if result.Command == "" {
			continue
		}
		cmd, _, err := cli.Tree().Find(strings.Fields(result.Command))
		if err != nil {
			t.Fatal(err)
		}
		sorts := cmd.Flags().Lookup("sort-by") != nil
		if want := slices.Contains(result.Formats, "wide") && !slices.Contains(severalKinds, result.Command); want && !sorts {
			t.Errorf("swdt %s has -o wide and no --sort-by", result.Command)
		}
	}
}

// wider ARG… runs swdt without and with -o wide, and requires longer lines.
func wider(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: wider ARG…")
	}
	var widest [2]int
	for i, more := range [][]string{nil, {"-o", "wide"}} {
		if err := ts.Exec("swdt", slices.Concat(args, more)...); err != nil && err.Error() != "exit status 5" {
			ts.Fatalf("swdt %s: %v", strings.Join(args, " "), err)
		}
		for line := range strings.Lines(ts.ReadFile("stdout")) {
			widest[i] = max(widest[i], len(line))
		}
	}
	if widest[1] <= widest[0] {
		ts.Fatalf("the widest line of swdt %s has %d bytes, and %d with -o wide", strings.Join(args, " "), widest[0],
			widest[1])
	}
}

// matches SCHEMA ARG… runs swdt with -o json and compares its output with the schema.
// Negated, it requires that swdt fails and nevertheless prints a document.
func matches(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: matches SCHEMA ARG…")
	}
	err := ts.Exec("swdt", append(args[1:], "-o", "json")...)
	interrupted := err != nil && err.Error() == "exit status 130" && ts.Getenv(interruptPrinted) != ""
	if failed := err != nil && err.Error() != "exit status 5" && !interrupted; failed != neg {
		ts.Fatalf("swdt %s: %v", strings.Join(args[1:], " "), err)
	}
	schema, err := jsonschema.NewCompiler().Compile(schemaPath(ts, args[0]))
	ts.Check(err)
	documents, err := documentsThatFit(schema, ts.ReadFile("stdout"))
	if err != nil {
		ts.Fatalf("swdt %s: %v", strings.Join(args[1:], " "), err)
	}
	if documents == 0 {
		ts.Fatalf("swdt %s printed nothing", strings.Join(args[1:], " "))
	}
}

// documentsThatFit counts the documents of an output, up to the first that does not
// match the schema.
func documentsThatFit(schema *jsonschema.Schema, output string) (count int, err error) {
	decoder := json.NewDecoder(strings.NewReader(output))
	for ; ; count++ {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err == nil {
			err = schema.Validate(document)
		}
		if err != nil {
			return count, err
		}
	}
}

// schemaPath returns an absolute path, since a script has a folder of its own.
func schemaPath(ts *testscript.TestScript, name string) string {
	path, err := filepath.Abs(filepath.Join(schemas, name))
	ts.Check(err)
	return path
}

package lint_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Findings have the line and the column of the field, also in a List, behind an alias and in JSON.
func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct {
		text, field string
		line        int
	}{
		"a List": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec:\n    os: {name: windows}\n" +
			"    hostPID: true\n    nodeSelector: {kubernetes.io/os: windows}\n    containers: []\n", "spec.hostPID", 9},
		"a second document": {"a: 1\n---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec:\n  jobTemplate:\n    spec:\n      template:\n" +
			"        spec:\n          os: {name: windows}\n          hostIPC: true\n          nodeSelector: {kubernetes.io/os: windows}\n",
			"spec.jobTemplate.spec.template.spec.hostIPC", 12},
		"an alias": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  os: {name: windows}\n  nodeSelector: {kubernetes.io/os: windows}\n" +
			"  initContainers:\n  - &c\n    name: a\n    securityContext: {procMount: ''}\n  containers: []\n", "spec.initContainers[0].securityContext.procMount", 10},
		"JSON": {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"os\":{\"name\":\"windows\"},\n\"hostUsers\":false," +
			"\"nodeSelector\":{\"kubernetes.io/os\":\"windows\"}}}", "spec.hostUsers", 2},
	} {
		report := checked(t, test.text)
		if len(report.Findings) != 1 || report.Findings[0].Field != test.field || report.Findings[0].Line != test.line {
			t.Errorf("%s: %+v, want %s at line %d", name, report.Findings, test.field, test.line)
		}
	}
}

// Null is not a value, and YAML 1.1 has more words for booleans, as kubectl reads them.
func TestValuesAsKubectlReadsThem(t *testing.T) {
	for spec, want := range map[string]string{
		"hostPID: null":  "",
		"hostPID: yes":   "sec-linux-field",
		"hostPID: 'yes'": "api-form",
		"hostPID: off":   "",
		"hostUsers: off": "sec-linux-field",
		"hostpid: true":  "", // names of fields have one spelling
		"securitycontext: {windowsOptions: {hostProcess: true}}": "",
		"securityContext: {sysctls: [], seLinuxOptions: null}":   "",
		"securityContext: {seLinuxOptions: {}}":                  "sec-linux-field",
	} {
		if got := strings.Join(rules(checked(t, lint.Manifest(spec)), finding.Error), " "); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// A comment ignores findings at its field and below, an annotation those of its object. Both need a rule that exists, and
// a reason.
func TestIgnore(t *testing.T) {
	const field = "  securityContext: {privileged: true}"
	for name, test := range map[string]struct {
		comment, annotation string
		want                string
	}{
		"nothing":                 {"", "", "sec-linux-field"},
		"a comment":               {"# swdt-lint:ignore sec-linux-field: a mutating webhook removes it", "", ""},
		"several rules":           {"# swdt-lint:ignore life-shell, sec-linux-field: a webhook: it removes it", "", ""},
		"another rule":            {"# swdt-lint:ignore life-shell: a webhook", "", "sec-linux-field"},
		"no reason":               {"# swdt-lint:ignore sec-linux-field", "", "ignore sec-linux-field"},
		"a rule that is not":      {"# swdt-lint:ignore sec-linux: a webhook", "", "ignore sec-linux-field"},
		"an annotation":           {"", "life-shell: a; sec-linux-field: a webhook removes it", ""},
		"an annotation, no cause": {"", "sec-linux-field:", "ignore sec-linux-field"},
		"a semicolon":             {"", "sec-linux-field: a webhook; it removes it; see: below; life-shell: b", ""},
		"a rule that is not, 2nd": {"", "sec-linux-field: a webhook; life-shel: b", "ignore"},
	} {
		text := strings.Replace(lint.Manifest(field), "    securityContext", "    "+cmp.Or(test.comment, "#")+"\n    securityContext", 1)
		text = strings.Replace(text, "  name: web\nspec", fmt.Sprintf("  name: web\n  annotations: {swdt.dev/lint-ignore: %q}\nspec", test.annotation), 1)
		if got := strings.Join(rules(checked(t, text), finding.Warning), " "); got != test.want {
			t.Errorf("%s: %q, want %q\n%s", name, got, test.want, text)
		}
	}
	top := "# swdt-lint:ignore sec-linux-field: the whole object\n" + lint.Manifest(field)
	if got := rules(checked(t, top), finding.Warning); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A comment above an empty line ignores findings if it is above the first field of an object. Below another field, YAML
// takes it for that field's, so it is reported and ignores nothing.
func TestIgnoreAboveAnEmptyLine(t *testing.T) {
	const comment = "# swdt-lint:ignore sec-linux-field: a webhook\n"
	pod := lint.Manifest("hostPID: true")
	for name, test := range map[string]struct{ text, want string }{
		"the object":        {comment + "\n" + pod, ""},
		"a second object":   {"a: 1\n---\n" + comment + "\n" + pod, ""},
		"before the marker": {"apiVersion: v1\nkind: ConfigMap\n\n" + comment + "---\n" + pod, "ignore sec-linux-field"},
		"a licence":         {"# Copyright\n\n" + comment + "\n---\n" + pod, ""},
		"a field":           {strings.Replace(pod, "  hostPID", "  "+comment+"\n  hostPID", 1), ""},
		"a later field":     {strings.Replace(pod, "  os:", "  "+comment+"\n  os:", 1), "ignore sec-linux-field"},
		"the end":           {pod + "\n" + comment, "ignore sec-linux-field"},
	} {
		if got := strings.Join(rules(checked(t, test.text), finding.Warning), " "); got != test.want {
			t.Errorf("%s: %q, want %q\n%s", name, got, test.want, test.text)
		}
	}
}

// A file of Helm's templates is named, and not read. Other files with braces are.
func TestTemplatesAreNotRead(t *testing.T) {
	var r lint.Reader
	err := r.Folder(fstest.MapFS{
		"chart/templates/a.yaml": {Data: []byte("kind: {{ .Values.kind }}\n")},
		"chart/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: a\n")},
		"a.json":                 {Data: []byte("{}")},
		"broken.yaml":            {Data: []byte("a: [")},
		"script.ps1":             {Data: []byte("$x")},
		".git/a.yaml":            {Data: []byte("a: [")},
	}, "x/")
	report := r.Check(lint.Options{})
	if err != nil || report.Texts != 4 || len(report.Unread) != 1 || report.Unread[0].File != "x/chart/templates/a.yaml" ||
		len(report.Findings) != 1 || report.Findings[0].File != "x/broken.yaml" {
		t.Errorf("%v %+v", err, report)
	}
}

// hostileReport is one whose names would move the cursor, end a line, or open another command.
func hostileReport() lint.Report {
	var r lint.Reader
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: \"a\\e[31m\\n::error::x\"}\nspec:\n  os: {name: windows}\n  hostPID: true\n" +
		"  containers: [{name: \"<b>\\e]0;x\\a\", image: 'a:1', securityContext: {procMount: \"%0A\\u202e\"}}]\n"
	r.File("a,b:\x1b[2J%.yaml", []byte(text))
	r.File("broken\x07.yaml", []byte("\x1b]0;title\x07: ["))
	return r.Check(lint.Options{})
}

// No output has a control sequence of a file, and each is well-formed.
func TestOutputsOfAHostileFile(t *testing.T) {
	report := hostileReport()
	var text bytes.Buffer
	page := ui.NewPage(&text, true)
	if err := report.WriteText(page); err != nil {
		t.Fatal(err)
	}
	if err := page.Flush(); err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer("\x1b[31m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(text.String())
	outputs := map[string]string{"text": plain}
	for _, format := range []string{lint.SARIF, lint.GitHub, lint.JUnit} {
		var out bytes.Buffer
		if err := report.Write(&out, format); err != nil {
			t.Fatal(err)
		}
		outputs[format] = out.String()
	}
	for name, output := range outputs {
		if strings.ContainsAny(output, "\x1b\x07") || strings.Contains(output, "\u202e") && name != lint.SARIF {
			t.Errorf("%s: %q", name, output)
		}
	}
	for line := range strings.Lines(outputs[lint.GitHub]) {
		if !strings.HasPrefix(line, "::error file=a%2Cb%3A") && !strings.HasPrefix(line, "::notice file=a%2Cb%3A") && !strings.HasPrefix(line, "::error file=broken") {
			t.Errorf("a line of its own: %q", line)
		}
	}
	if !json.Valid([]byte(outputs[lint.SARIF])) {
		t.Error("SARIF is no JSON")
	}
	if err := xml.Unmarshal([]byte(outputs[lint.JUnit]), new(struct{})); err != nil {
		t.Error(err)
	}
}

// SARIF has each finding with its rule's index, and the reason of one that is ignored; JUnit counts what fails.
func TestFormats(t *testing.T) {
	text := strings.Replace(lint.Manifest("  securityContext:\n    privileged: true\n    # swdt-lint:ignore sec-linux-field: a webhook\n    runAsUser: 1"), "500Mi", "1Gi", 1)
	report := checked(t, text)
	var out bytes.Buffer
	if err := report.Write(&out, lint.SARIF); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID       string
				RuleIndex    int
				Suppressions []struct{ Kind, Justification string }
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	results := log.Runs[0].Results
	if len(results) != 2 || log.Runs[0].Tool.Driver.Rules[results[0].RuleIndex].ID != "sec-linux-field" || len(results[0].Suppressions) != 0 ||
		results[1].Suppressions[0].Justification != "a webhook" {
		t.Errorf("%+v", log)
	}
	out.Reset()
	if err := report.Write(&out, lint.JUnit); err != nil || !strings.Contains(out.String(), `tests="1" failures="1"`) {
		t.Errorf("%v %s", err, out.String())
	}
}

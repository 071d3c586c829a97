package document_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/format/redact/document"
)

func redactor(t testing.TB) *redact.Redactor {
	t.Helper()
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDocuments(t *testing.T) {
	r := redactor(t)
	for _, test := range []struct{ name, text, want string }{
		{"Secret of JSON", `{"data":{"a":"eHl6"},"kind":"Secret","type":"Opaque"}`,
			`{"data":{"a":"REDACTED"},"kind":"Secret","type":"Opaque"}`},
		{"ConfigMap of JSON", `{"data":{"a":"eHl6"},"kind":"ConfigMap"}`, `{"data":{"a":"eHl6"},"kind":"ConfigMap"}`},
		{"list of Secrets", `{"items":[{"kind":"Secret","data":{"a":"eHl6"}},{"kind":"Pod","data":{"a":"eHl6"}}]}`,
			`{"items":[{"kind":"Secret","data":{"a":"REDACTED"}},{"kind":"Pod","data":{"a":"eHl6"}}]}`},
		{"document in a text", `{"a":"{\"data\":{\"a\":\"eHl6\"},\"kind\":\"Secret\"}","b":"<&>"}`,
			`{"a":"{\"data\":{\"a\":\"REDACTED\"},\"kind\":\"Secret\"}","b":"<&>"}`},
		{"escaped name", `{"pass\u0077ord":"abc","n":[1,true,null]}`, `{"pass\u0077ord":"REDACTED","n":[1,true,null]}`},
		{"names of the plural's values", `{"passwords":{"db":"x1","web":"y2"}}`,
			`{"passwords":{"db":"REDACTED","web":"REDACTED"}}`},
		{"names of Secrets", `{"secrets":[{"name":"default-token-abc12"}],"imagePullSecrets":[{"name":"r1-creds"}]}`,
			`{"secrets":[{"name":"default-token-abc12"}],"imagePullSecrets":[{"name":"r1-creds"}]}`},
		{"key of JSON", `{"kty":"oct","k":"abc","kid":"1"}`, `{"kty":"oct","k":"REDACTED","kid":"1"}`},
		{"Secret of YAML", "data:\n  a: eHl6\nkind: Secret\n", "data:\n  a: REDACTED\nkind: Secret\n"},
		{"two documents of YAML", "kind: Pod\ndata:\n  a: b\n---\nkind: Secret\ndata:\n  a: eHl6\n",
			"kind: Pod\ndata:\n  a: b\n---\nkind: Secret\ndata:\n  a: REDACTED\n"},
		{"YAML of which nothing is secret stays byte for byte", "a:   b # x\nc:\n    - d\n",
			"a:   b # x\nc:\n    - d\n"},
		{"name of YAML on a line of its own", "? password\n: abc\n", "? password\n: REDACTED\n"},
		{"TOML", "[a]\n\"pass\\u0077ord\" = 'abc'\nb = 1 # x\n", "[a]\n\"pass\\u0077ord\" = \"REDACTED\"\nb = 1 # x\n"},
		{"number in a table of TOML", "a = {password = 4711, n = 1}\n", "a = {password = \"REDACTED\", n = 1}\n"},
		{"number in the third line of a list of TOML", "a = [\n  {n = 1},\n  {token = 20261122, n = 'x'},\n]\n",
			"a = [\n  {n = 1},\n  {token = \"REDACTED\", n = 'x'},\n]\n"},
		{"number behind an option in TOML", "args = ['--password', 4711, '-v']\n",
			"args = ['--password', 'REDACTED', '-v']\n"},
		{"number of another base in TOML", "a = {password = 0xFFAA17, n = 1}\n",
			"a = {password = \"REDACTED\", n = 1}\n"},
		{"TOML that the node's scan broke", "a = {password = REDACTED, n = 'REDACTED'} # REDACTED\n[Secrets]\n" +
			"\"pass\\u0077ord\" = 'abc'\n", "a = {password = \"REDACTED\", n = 'REDACTED'} # REDACTED\n[Secrets]\n" +
			"\"pass\\u0077ord\" = \"REDACTED\"\n"},
		{"attribute of XML over lines", "<a password=\"ab\ncd\" b='1'/>\n", "<a password=\"REDACTED\" b='1'/>\n"},
		{"no document", "x: [\n", "x: [\n"},
	} {
		if got := redacted(r, []byte(test.text)); got != test.want && !sameYAML(got, test.want) {
			t.Errorf("%s:\n%s\nbecame\n%s", test.name, test.text, got)
		}
	}
}

func redacted(r *redact.Redactor, text []byte) string {
	clean, _ := document.Redact(r, text)
	return string(clean)
}

func sameYAML(a, b string) bool {
	var first, second any
	return strings.Contains(b, "\n") && b[0] != '<' && yaml.Unmarshal([]byte(a), &first) == nil &&
		yaml.Unmarshal([]byte(b), &second) == nil && first != nil && reflect.DeepEqual(first, second)
}

// texts returns values for documents.
func texts() []string {
	return []string{
		"x", "hunter2", "a b", `C:\k`, "two\nlines", "A_TOKEN=x y", "--password", "https://u:p@h/x",
		"password: hunter2", "password = '''", "password = '", "pAss='", "token: |", `{"password":"x"}`,
		"- value: x", "<password>", "[", "'", `"`, "name: DB_PASSWORD", "Secret", "# x",
		"eyJhbGciOiJub25lIn0.eyJpc3MiOiJrdWJlcm5ldGVzIn0.",
		"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END " +
			"PRIVATE KEY-----\n",
	}
}

func writeJSON(v any, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(v)
	return text.Bytes(), err
}

func generate(t *rapid.T, depth int) any {
	names := []string{"password", "tokens", "name", "value", "key", "args", "x", "auth", "authorization", "kind",
		"data", "secrets", "DB_PASS", "kty", "d"}
	switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		all := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			all = append(all, generate(t, depth-1))
		}
		return all
	case kind <= 2 && depth > 0 || depth == 4:
		all := map[string]any{}
		for range rapid.IntRange(1, 4).Draw(t, "length") {
			all[rapid.SampledFrom(names).Draw(t, "name")] = generate(t, depth-1)
		}
		return all
	case kind == 3:
		return rapid.Bool().Draw(t, "bool")
	case kind == 4:
		return rapid.OneOf(rapid.IntRange(2, 99999).AsAny(), rapid.SampledFrom([]any{2.5, 1e21, -3, true})).Draw(t,
			"number")
	}
	return rapid.SampledFrom(texts()).Draw(t, "text")
}

// A document stays a document, and only its values change.
func TestADocumentStaysOne(t *testing.T) {
	r := redactor(t)
	for name, format := range map[string]struct {
		write func(any) ([]byte, error)
		read  func([]byte, any) error
	}{
		"JSON":           {func(v any) ([]byte, error) { return writeJSON(v, "  ") }, json.Unmarshal},
		"JSON, one line": {func(v any) ([]byte, error) { return writeJSON(v, "") }, json.Unmarshal},
		"YAML":           {yaml.Marshal, yaml.Unmarshal},
		"TOML":           {toml.Marshal, toml.Unmarshal},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text, err := format.write(generate(t, 4))
				if err != nil {
					t.Skip("the format cannot hold it")
				}
				var before, after map[string]any
				if err := format.read(text, &before); err != nil {
					t.Skip("the format's writer is wrong")
				}
				for _, text := range [][]byte{text, r.Bytes(text)} { // unchanged, and as a node sends it
					clean, _ := document.Redact(r, text)
					after = nil
					if err := format.read(clean, &after); err != nil {
						t.Fatalf("%s\nbecame\n%s\n%v", text, clean, err)
					}
					if !sameStructure(before, after) {
						t.Fatalf("%s\nbecame\n%s", text, clean)
					}
				}
			})
		})
	}
}

// sameStructure reports whether two documents differ only in redacted values.
func sameStructure(before, after any) bool {
	switch before := before.(type) {
	case map[string]any:
		after, ok := after.(map[string]any)
		if !ok || len(after) != len(before) {
			return false
		}
		for name, value := range before {
			if !sameStructure(value, after[name]) {
				return false
			}
		}
		return true
	case []any:
		after, ok := after.([]any)
		if !ok || len(after) != len(before) {
			return false
		}
		for i := range before {
			if !sameStructure(before[i], after[i]) {
				return false
			}
		}
		return true
	}
	text, ok := after.(string)
	return reflect.DeepEqual(before, after) || ok && strings.Contains(text, redact.Mark)
}

func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"password":["x"]}`, "password:\n- x\n", "password = '''\nx\n'''\n",
		"<a password='x'>y</a>", "kind: Secret\ndata: {a: b}\n", "a: &b c\nd: *b\n", "a = {password = 4711, n = 1}\n",
		"1E700", `"pAss='"`, `"!pAss='"`, `{"a":"pAss='","b":1}`,
		`{"passwords":[{"pass\u0077ord":"hunter2","n":[1,{"a":"}]\""}]},["x",["y"]],{"kind":"Secret",` +
			`"data":{"a":"eHl6"}}],"z":null} {"n":2}`} {
		f.Add([]byte(seed))
	}
	r := redactor(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		clean, _ := document.Redact(r, text)
		groups, parsed := document.RedactLarge(r, text, 40)
		if json.Valid(text) && (!json.Valid(clean) || parsed && !sameStructure(decoded(t, text), decoded(t, groups))) {
			t.Fatalf("%s\nbecame\n%s\nand in groups\n%s", text, clean, groups)
		}
		if again, _ := document.Redact(r, clean); len(again) > 2*len(clean)+1000 {
			t.Fatalf("it grows: %d, %d bytes", len(clean), len(again))
		}
		decoder := xml.NewDecoder(strings.NewReader(string(clean)))
		for {
			if _, err := decoder.RawToken(); err != nil {
				if !errors.Is(err, io.EOF) {
					return
				}
				break
			}
		}
	})
}

// A JSON document that is too large to be parsed at once is split into groups: its secrets are redacted, the rest is
// unchanged.
func TestLargeDocuments(t *testing.T) {
	r := redactor(t)
	const (
		escaped = `{"n":[1,true,null],"pass\u0077ord":"hunter2"}`
		secret  = `{"data":{"a":"eHl6"},"kind":"Secret"}`
		large   = document.Largest
	)
	list := strings.Repeat(escaped+",\n "+secret+",", large/60) + `"x"`
	fields := strings.Repeat(`"n":{"a":"}]"},"pass\u0077ord":"hunter2", `, large/30) + `"z":1`
	pad := `"pad":"` + strings.Repeat("word ", large/20) + `"`
	for name, text := range map[string]string{
		"list":              "[" + list + "]\n",
		"list within":       ` { "kind": "List", "items" : [` + list + `] , "last": ` + escaped + `}`,
		"object":            "{" + fields + "}",
		"several documents": "[" + list + "]\n[" + list + "]\n" + escaped,
		"plural's values": `{"passwords":{"a":{` + pad + `},"b":{` + pad + `},"c":{` + pad + `},"d":{` + pad +
			`},"e":"hunter2", ` + pad + `}}`,
		"values of one name":      `{"pass\u0077ord":[` + strings.Repeat(`"hunter2",[["eHl6"]],`, large/10) + `5]}`,
		"large value at its edge": `{"a":[` + list + `],"b":{` + fields + `}}`,
	} {
		clean, parsed := document.Redact(r, []byte(text))
		if !parsed || !sameStructure(decoded(t, []byte(text)), decoded(t, clean)) {
			t.Errorf("%s: parsed %t, %.200q", name, parsed, clean)
		}
		for _, planted := range []string{"hunter2", "eHl6"} {
			if at := bytes.Index(clean, []byte(planted)); at >= 0 {
				t.Errorf("%s: %s is left at %d: %.200q", name, planted, at, clean[max(0, at-100):])
			}
		}
		if name == "list" && !strings.HasPrefix(string(clean), `[{"n":[1,true,null],"pass\u0077ord":"REDACTED"},`+"\n "+
			`{"data":{"a":"REDACTED"},"kind":"Secret"},`) {
			t.Errorf("%.200q", clean)
		}
	}
	for name, text := range map[string]string{
		"YAML": strings.Repeat("- a\n", large/2), "no JSON": "[" + list, "one text": `["` +
			strings.Repeat("x ", large) + `"]`,
		"deep": strings.Repeat("[", 100) + list + strings.Repeat("]", 100),
	} {
		if clean, parsed := document.Redact(r, []byte(text)); parsed || len(clean) < large {
			t.Errorf("%s: parsed %t, %d bytes", name, parsed, len(clean))
		}
	}
}

func decoded(t *testing.T, text []byte) (all []any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a JSON number has any size
	for {
		var one any
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

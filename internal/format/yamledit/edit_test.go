package yamledit_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/internal/format/yamledit"
)

func TestRemove(t *testing.T) {
	for name, test := range map[string]struct{ before, path, after string }{
		"a line":               {"a: 1\nb: 2 # two\nc: 3\n", "b", "a: 1\nc: 3\n"},
		"the first":            {"a: 1\nb: 2\n", "a", "b: 2\n"},
		"the last, no newline": {"a: 1\nb: 2", "b", "a: 1\n"},
		"a comment above":      {"a: 1\n# about b\nb: 2\n\n# about c\nc: 3\n", "b", "a: 1\n# about b\n\n# about c\nc: 3\n"},
		"a mapping":            {"a:\n  b:\n    c: 1\n    d: 2\n  # next\n  e: 3\n", "a b", "a:\n  # next\n  e: 3\n"},
		"a list":               {"a:\n- 1\n- x: 2\n  y: 3\nb: 4\n", "a", "b: 4\n"},
		"a text":               {"a: |\n  1\n\n  # no comment\nb: 4\n", "a", "b: 4\n"},
		"a text, long":         {"a: one\n  two\n  three\nb: 4\n", "a", "b: 4\n"},
		"of an item":           {"l:\n- a: 1\n  b: 2\n- a: 3\n  b: 4\n", "l [1] b", "l:\n- a: 1\n  b: 2\n- a: 3\n"},
		"the first of an item": {"l:\n  - a: 1\n    b: 2\n", "l [0] a", "l:\n  - b: 2\n"},
		"the only one":         {"a:   # note\n  # why\n  b: 1\nc: 2\n", "a b", "a: {}   # note\n  # why\nc: 2\n"},
		"in braces":            {"a: {b: 1, c: '}, x: {', d: 3}\n", "a c", "a: {b: 1, d: 3}\n"},
		"last in braces":       {"a: { b: 1, c: [1, {x: 2}] }\n", "a c", "a: { b: 1 }\n"},
		"only one in braces":   {"a: {b: it's}\n", "a b", "a: {}\n"},
		"JSON":                 {"{\n  \"a\": {\n    \"b\": \"\\\"}\",\n    \"c\": 2\n  }\n}\n", "a b", "{\n  \"a\": {\n    \"c\": 2\n  }\n}\n"},
		"JSON, the last":       {"{\n  \"a\": {\n    \"b\": 1,\n    \"c\": 2\n  }\n}\n", "a c", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"},
		"Windows":              {"\xef\xbb\xbfa: 1\r\nb: ü\r\nc: 3\r\n", "b", "\xef\xbb\xbfa: 1\r\nc: 3\r\n"},
		"characters":           {"x: {é: ü, b: 1, c: ö}\n", "x b", "x: {é: ü, c: ö}\n"},
		"a marker":             {"# head\n---\na: 1\nb: 2\n", "b", "# head\n---\na: 1\n"},
	} {
		got, err := yamledit.Remove([]byte(test.before), strings.Fields(test.path)...)
		if err != nil || string(got) != test.after {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.after)
		}
	}
}

func TestSet(t *testing.T) {
	for name, test := range map[string]struct {
		before, path string
		value        any
		after        string
	}{
		"a value":            {"a: 1 # one\nb: false # no\n", "b", true, "a: 1 # one\nb: true # no\n"},
		"in quotes":          {"a: 'it''s' # x\n", "a", "ntfs", "a: ntfs # x\n"},
		"a text that is not": {"a: b\n", "a", "true", "a: \"true\"\n"},
		"a new field":        {"# top\na: 1\nb: 2\n", "c", 3, "# top\na: 1\nb: 2\nc: 3\n"},
		"below a comment":    {"a:\n# not\n  # one\n  # two\n  b: 1\n", "a c", 3, "a:\n# not\n  c: 3\n  # one\n  # two\n  b: 1\n"},
		"deep":               {"spec:\n    a: 1\n", "spec nodeSelector kubernetes.io/os", "windows", "spec:\n    nodeSelector:\n      kubernetes.io/os: windows\n    a: 1\n"},
		"of an item":         {"l:\n- a: 1\n  b:\n    c: 2\n\n- a: 2\n", "l [0] d", true, "l:\n- a: 1\n  d: true\n  b:\n    c: 2\n\n- a: 2\n"},
		"of an item of one":  {"l:\n- a: 1", "l [0] d", true, "l:\n- a: 1\n  d: true\n"},
		"in braces":          {"spec: {a: 1}\n", "spec os name", "windows", "spec: {os: {name: windows}, a: 1}\n"},
		"in empty braces":    {"nodeSelector: {}\n", "nodeSelector kubernetes.io/os", "windows", "nodeSelector: {kubernetes.io/os: windows}\n"},
		"nothing":            {"a:\n  b: # later\nc: 1\n", "a b", true, "a:\n  b: true # later\nc: 1\n"},
		"below nothing":      {"a:\nc: 1\n", "a b d", "x", "a: {b: {d: x}}\nc: 1\n"},
		"null":               {"a: null\n", "a b", 1, "a: {b: 1}\n"},
		"JSON":               {"{\"spec\":{\"a\":\"x\"}}", "spec os name", "windows", "{\"spec\":{\"os\": {\"name\": \"windows\"}, \"a\":\"x\"}}"},
		"JSON, a value":      {"{\"spec\":{\"a\":\"x\"}}", "spec a", "windows", "{\"spec\":{\"a\":\"windows\"}}"},
		"Windows":            {"a: 1\r\nb:\r\n  c: 2\r\n", "b d", 3, "a: 1\r\nb:\r\n  d: 3\r\n  c: 2\r\n"},
		"special":            {"a: {b: 1}\n", "a c", "x, y", "a: {c: \"x, y\", b: 1}\n"},
	} {
		got, err := yamledit.Set([]byte(test.before), test.value, strings.Fields(test.path)...)
		if err != nil || string(got) != test.after {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.after)
		}
	}
}

// A form that cannot be edited is refused: values that several places share, and texts that would say something else.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, path string }{
		"an anchor":                 {"a: &x {b: 1}\nc: *x\n", "a b"},
		"an anchor inside":          {"a:\n  b: &x 1\n  d: 2\nc: *x\n", "a b"},
		"an alias":                  {"a: &x {b: 1}\nc: *x\n", "c b"},
		"a merge":                   {"a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n", "c b"},
		"the only field":            {"a: 1\n", "a"},
		"a comment in braces":       {"a: {b: 1, # one\n  c: 2}\n", "a b"},
		"two documents":             {"a: 1\nb: 2\n---\nc: 3\n", "b"},
		"no YAML":                   {"a: [\n", "a"},
		"the first, then a comment": {"l:\n- a: 1\n  # why\n  b: 2\n", "l [0] a"},
		"a field that is not":       {"a: 1\nb: 2\n", "c"},
		"a field below one":         {"a: 1\nb: 2\n", "c b"},
		"a text without indent":     {"a: 1\nb: \"x\nc: 2\"\n", "b"},
		"a list":                    {"a: [1, 2]\nb: 1\n", "a [0]"},
	} {
		if got, err := yamledit.Remove([]byte(test.text), strings.Fields(test.path)...); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, test := range map[string]struct{ text, path string }{
		"a mapping":           {"a: {b: 1}\n", "a"},
		"a list":              {"a: [1]\n", "a b"},
		"several lines":       {"a: |\n  x\n", "a"},
		"a plain, long one":   {"a: x\n  y\n", "a"},
		"an anchor":           {"a: &x 1\nb: *x\n", "a"},
		"an alias":            {"a: &x 1\nb: *x\n", "b"},
		"an item that is not": {"a: [1]\n", "a [1] b"},
		"a text":              {"a: x\n", "a b"},
	} {
		got, err := yamledit.Set([]byte(test.text), true, strings.Fields(test.path)...)
		if !errors.As(err, new(*yamledit.FormError)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Each field of random documents in many forms can be removed and set; the text around it stays, byte for byte.
func TestRandomDocuments(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	refused, made := 0, 0
	for range 300 {
		text := document(random)
		var root yaml.Node
		if err := yaml.Unmarshal([]byte(text), &root); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for path, isScalar := range fields(root.Content[0], nil) {
			for i, edit := range []func() ([]byte, error){
				func() ([]byte, error) { return yamledit.Remove([]byte(text), path...) },
				func() ([]byte, error) {
					return yamledit.Set([]byte(text), "new", append(path[:len(path)-1:len(path)-1], "k-new")...)
				},
			} {
				made++
				got, err := edit()
				switch {
				case errors.As(err, new(*yamledit.FormError)):
					refused++
				case err != nil:
					t.Fatalf("%v: %v\n%s", path, err, text)
				default:
					if i == 1 || isScalar { // a mapping has comments inside
						keepsComments(t, []byte(text), got)
					}
				}
			}
		}
	}
	t.Logf("%d of %d edits were refused", refused, made)
	if refused*20 > made {
		t.Errorf("%d of %d edits were refused", refused, made)
	}
}

// keepsComments fails the test if the bytes by which two texts differ have a comment in a line of its own.
func keepsComments(t *testing.T, before, after []byte) {
	t.Helper()
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	if gone := before[head : len(before)-tail]; bytes.Count(gone, []byte("# keep")) > 0 {
		t.Errorf("a comment is gone: %q of\n%s", gone, before)
	}
}

// fields yields the paths of all fields of mappings, and whether their values are scalars.
func fields(n *yaml.Node, at []string) iter.Seq2[[]string, bool] {
	return func(yield func([]string, bool) bool) {
		for i, value := range n.Content {
			path := append(at[:len(at):len(at)], fmt.Sprintf("[%d]", i))
			if n.Kind == yaml.MappingNode {
				if i%2 == 0 {
					continue
				}
				path[len(at)] = n.Content[i-1].Value
				if !yield(path, value.Kind == yaml.ScalarNode) {
					return
				}
			}
			for inner, isScalar := range fields(value, path) {
				if !yield(inner, isScalar) {
					return
				}
			}
		}
	}
}

// document returns a document with mappings in lines and in braces, lists, and comments in lines of their own.
func document(random *rand.Rand) string {
	var b strings.Builder
	if random.IntN(3) == 0 {
		b.WriteString("---\n")
	}
	mapping(&b, random, "", 3)
	return b.String()
}

func mapping(b *strings.Builder, random *rand.Rand, indent string, depth int) {
	for i := range 1 + random.IntN(4) {
		if i > 0 && random.IntN(4) == 0 {
			b.WriteString("\n" + indent + "# keep\n")
		}
		if i > 0 {
			b.WriteString(indent)
		}
		fmt.Fprintf(b, "k%d:", i)
		value(b, random, indent, depth)
	}
}

func value(b *strings.Builder, random *rand.Rand, indent string, depth int) {
	choice := random.IntN(9)
	if depth == 0 {
		choice = random.IntN(6)
	}
	switch choice {
	case 0:
		b.WriteString(" plain text # note\n")
	case 1:
		b.WriteString(" 'it''s: {a}'\n")
	case 2:
		b.WriteString(" \"q\\\" # no\"\n")
	case 3:
		b.WriteString(" {a: 1, b: [x, {c: 'd}'}], e: {}}\n")
	case 4:
		b.WriteString(" |\n" + indent + "  text\n\n" + indent + "  # text\n")
	case 5:
		b.WriteString("\n")
	case 6, 7:
		deeper := indent + strings.Repeat(" ", 1+random.IntN(4))
		b.WriteString("\n" + deeper)
		mapping(b, random, deeper, depth-1)
	default:
		lower := indent + strings.Repeat(" ", random.IntN(3))
		b.WriteString("\n")
		for range 1 + random.IntN(2) {
			b.WriteString(lower + "- ")
			mapping(b, random, lower+"  ", depth-1)
		}
	}
}

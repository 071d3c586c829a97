package yamledit_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/internal/format/yamledit"
)

// Each field of random documents in many forms can be removed and set; the text around it stays, byte for byte.
func TestRandomDocuments(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("SWDT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SWDT_SEED: %v", err)
		}
	}
	t.Logf("SWDT_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	refused, made := 0, 0
	for range 40 {
		text := document(random)
		var root yaml.Node
		if err := yaml.Unmarshal([]byte(text), &root); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for path, isScalar := range fields(root.Content[0], nil) {
			for i, edit := range []func() (string, error){
				func() (string, error) { return yamledit.Remove(text, path) },
				func() (string, error) {
					return yamledit.Set(text, append(path[:len(path)-1:len(path)-1], "k-new"), "new")
				},
			} {
				made++
				got, err := edit()
				switch {
				case errors.As(err, new(*yamledit.PlaceError)):
					refused++
				case err != nil:
					t.Fatalf("%v: %v\n%s", path, err, text)
				default:
					if i == 1 || isScalar { // a mapping has comments inside
						keepsComments(t, text, got)
					}
				}
			}
		}
	}
	t.Logf("%d of %d edits were refused", refused, made)
	if refused*4 > made {
		t.Errorf("%d of %d edits were refused", refused, made)
	}
}

// keepsComments fails the test if the bytes by which two texts differ have a comment in a line of its own.
func keepsComments(t *testing.T, before, after string) {
	t.Helper()
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	if gone := before[head : len(before)-tail]; strings.Count(gone, "# keep") > 0 {
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

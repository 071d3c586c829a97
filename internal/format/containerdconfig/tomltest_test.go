//go:build oracles

package containerdconfig_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
)

// TestOverlayOfTOMLTest puts a table over each valid document of toml-test 1.6.0 (MIT,
// https://github.com/toml-lang/toml-test). SWDT_TOML_TEST is the folder of its source. Each document must be accepted, keep
// its values, and have the new one.
func TestOverlayOfTOMLTest(t *testing.T) {
	root := filepath.Join(os.Getenv("SWDT_TOML_TEST"), "tests")
	list, err := os.ReadFile(filepath.Join(root, "files-toml-1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for name := range strings.FieldsSeq(string(list)) {
		if !strings.HasPrefix(name, "valid/") || filepath.Ext(name) != ".toml" {
			continue
		}
		files++
		text, err := fs.ReadFile(os.DirFS(root), name)
		if err != nil {
			t.Fatal(err)
		}
		over, err := containerdconfig.Overlay(text, map[string]any{"swdt-new": map[string]any{"value": "x"}}, "")
		if err != nil {
			t.Errorf("%s is refused: %v", name, err)
			continue
		}
		var before, after map[string]any
		if err := toml.Unmarshal(text, &before); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := toml.Unmarshal(over, &after); err != nil {
			t.Errorf("%s became\n%s\n%v", name, over, err)
			continue
		}
		if got := after["swdt-new"]; !reflect.DeepEqual(got, map[string]any{"value": "x"}) {
			t.Errorf("%s lacks the new value: %v", name, got)
		}
		delete(after, "swdt-new")
		if fmt.Sprintf("%#v", before) != fmt.Sprintf("%#v", after) { // NaN differs from itself
			t.Errorf("%s changed: %v became %v", name, before, after)
		}
	}
	t.Logf("%d valid documents", files)
	if files < 150 {
		t.Errorf("%d documents, want 150", files)
	}
}

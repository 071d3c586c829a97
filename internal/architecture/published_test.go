package architecture_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// knownName matches a text that begins with the name of an image in a registry, or with a URL of a download.
var knownName = regexp.MustCompile(`^(sigwindowstools/|mcr\.microsoft\.com/|registry\.k8s\.io/|quay\.io/|ghcr\.io/|docker\.io/.|` +
	`https://raw\.githubusercontent\.com/|https://dl\.k8s\.io|https://github\.com/[^ ]*/releases/download/)\S*$`)

// standInFolders have names of images that stand for those of a user.
func standInFolders() []string {
	return []string{"internal/sandbox", "internal/testing", "internal/platform/imitation"}
}

// notUsed are texts that name nothing which swdt fetches.
func notUsed() []string {
	return []string{"https://raw.githubusercontent.com/swdt-dev/swdt/main/api/v1alpha1/schema.json"} // the ID of a schema
}

// docs/published.md lists each image and each download that swdt knows by name, and no other.
func TestNamesOfImagesAndDownloadsAreListed(t *testing.T) {
	root := "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/published.md"))
	if err != nil {
		t.Fatal(err)
	}
	used, _, _ := strings.Cut(string(text), "not published any more")
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\| \\d{4}-\\d\\d-\\d\\d \\|$").FindAllStringSubmatch(used, -1) {
		listed[row[1]] = false
	}
	for _, folder := range []string{"internal", "cmd", "api"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			inside := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
			switch {
			case err != nil:
				return err
			case entry.IsDir() && slices.Contains(standInFolders(), inside):
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			for _, name := range namesIn(t, path) {
				if _, ok := listed[name]; !ok {
					t.Errorf("%s: %s has no row in docs/published.md", inside, name)
				}
				listed[name] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, found := range listed {
		if !found {
			t.Errorf("docs/published.md lists %s, which no code has", name)
		}
	}
	if len(listed) < 10 {
		t.Errorf("docs/published.md lists %d names", len(listed))
	}
}

// namesIn returns the texts of a file that are names.
func namesIn(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && knownName.MatchString(text) && !slices.Contains(notUsed(), text) {
			names = append(names, text)
		}
		return true
	})
	return names
}

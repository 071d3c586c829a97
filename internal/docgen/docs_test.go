package main

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestEveryDecisionIsListed compares the table of docs/adr/README.md with the
// numbers and titles of the decisions.
func TestEveryDecisionIsListed(t *testing.T) {
	folder := filepath.Join(root, "docs/adr")
	paths, err := filepath.Glob(filepath.Join(folder, "0*.md"))
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`^# ([0-9]+)\. (.+)\n`)
	var decisions []string
	for _, path := range paths {
		found := heading.FindStringSubmatch(read(t, path))
		if found == nil {
			t.Fatalf("%s does not begin with `# NUMBER. TITLE`", path)
		}
		decisions = append(decisions, "| "+found[1]+" | ["+found[2]+"]("+filepath.Base(path)+")")
	}
	var listed []string
	for line := range strings.Lines(read(t, filepath.Join(folder, "README.md"))) {
		if line, _, ok := strings.Cut(line, ".md) | "); ok {
			listed = append(listed, line+".md)")
		}
	}
	if diff := cmp.Diff(decisions, listed); diff != "" {
		t.Errorf("docs/adr/README.md (+) does not list the decisions (-) in their order:\n%s", diff)
	}
}

// TestEveryPageIsListed keeps docs/README.md complete: it links to each page
// below docs, except to single decisions.
func TestEveryPageIsListed(t *testing.T) {
	index := filepath.Join(root, "docs/README.md")
	var missing []string
	linked := targets(read(t, index))
	for _, page := range pages(t) {
		name, err := filepath.Rel(filepath.Dir(index), page)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		below := !strings.HasPrefix(name, "../") && !strings.HasPrefix(name, "adr/0") && name != "README.md"
		if below && !slices.Contains(linked, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/README.md links to none of %q", missing)
	}
}

// TestLinksResolve checks that each relative link of a page leads to a file, and
// its fragment to a heading there.
func TestLinksResolve(t *testing.T) {
	for _, page := range pages(t) {
		for _, target := range targets(read(t, page)) {
			if strings.Contains(target, "://") {
				continue
			}
			path, fragment, _ := strings.Cut(target, "#")
			file := filepath.Join(filepath.Dir(page), path)
			if path == "" {
				file = page
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, target)
				continue
			}
			if fragment != "" && !slices.Contains(anchors(read(t, file)), fragment) {
				t.Errorf("%s: the link %s leads to no heading", page, target)
			}
		}
	}
}

// TestPagesNameThingsThatExist checks the folders of internal/ and the tests that
// pages written by hand name. The change log is left out: it names what was.
func TestPagesNameThingsThatExist(t *testing.T) {
	tests := testNames(t)
	folder := regexp.MustCompile(`\binternal/[\w/.]*\w`)
	source := regexp.MustCompile(`<https://[^>]*>`) // of other projects, which have folders of that name
	test := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]+)`(?: \\(`(internal/[\\w/]+)`\\))?")
	for _, page := range pages(t) {
		if filepath.Base(page) == "CHANGELOG.md" {
			continue
		}
		text := source.ReplaceAllString(read(t, page), "")
		for _, name := range folder.FindAllString(text, -1) {
			if name != strings.ToLower(name) {
				continue // a word in capitals stands for any name
			}
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		for _, found := range test.FindAllStringSubmatch(text, -1) {
			switch folders := tests[found[1]]; {
			case len(folders) == 0:
				t.Errorf("%s names the test %s, which does not exist", page, found[1])
			case found[2] != "" && !slices.Contains(folders, found[2]):
				t.Errorf("%s names the test %s of %s, which is in %q", page, found[1], found[2], folders)
			}
		}
	}
}

// TestFoldersWithCodeForOneSystemAreListed compares the folders in the table of docs/platforms.md
// with those that have a file for some of Linux, macOS and Windows, but not for all.
func TestFoldersWithCodeForOneSystemAreListed(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `((?:cmd|internal)/[\\w/-]+)` \\|")
	var listed []string
	for _, found := range row.FindAllStringSubmatch(read(t, filepath.Join(root, "docs/platforms.md")), -1) {
		listed = append(listed, found[1])
	}
	slices.Sort(listed)
	var partial []string
	for _, top := range []string{"api", "cmd", "internal"} {
		partial = append(partial, foldersForSomeSystems(t, top)...)
	}
	slices.Sort(partial)
	if diff := cmp.Diff(slices.Compact(partial), listed); diff != "" {
		t.Errorf("docs/platforms.md (+) does not list the folders with code for one system (-); "+
			"add a row that says what each system lacks:\n%s", diff)
	}
}

// foldersForSomeSystems returns the folders below a folder with a Go file that is compiled for some
// systems only, once for each file. Tests, helpers of tests, and the node's side are left out.
func foldersForSomeSystems(t *testing.T, top string) []string {
	t.Helper()
	left := []string{"testdata", "internal/testing", "internal/platform/windows"}
	var folders []string
	err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if entry.IsDir() && (slices.Contains(left, name) || slices.Contains(left, entry.Name())) {
			return filepath.SkipDir
		}
		if filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && forSomeSystems(t, path) {
			folders = append(folders, filepath.ToSlash(filepath.Dir(name)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// forSomeSystems reports whether a file is compiled for one of the systems that swdt is built for,
// but not for all of them.
func forSomeSystems(t *testing.T, path string) bool {
	t.Helper()
	systems := []string{"linux", "darwin", "windows"}
	compiled := 0
	for _, system := range systems {
		context := build.Default
		context.GOOS, context.GOARCH, context.CgoEnabled = system, "amd64", false
		matches, err := context.MatchFile(filepath.Dir(path), filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		if matches {
			compiled++
		}
	}
	return compiled > 0 && compiled < len(systems)
}

// pages returns the paths of all Markdown pages for readers.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	forms, err := filepath.Glob(filepath.Join(root, ".github", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, forms...)
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// targets returns the targets of all links and images of a page.
func targets(page string) []string {
	var all []string
	for _, found := range link.FindAllStringSubmatch(page, -1) {
		all = append(all, found[1])
	}
	return all
}

// anchors returns the fragments of a page's headings, as GitHub makes them: it adds a number
// to a heading that occurred before.
func anchors(page string) []string {
	var all []string
	times := map[string]int{}
	for line := range strings.Lines(page) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		fragment := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))
		if n := times[fragment]; n > 0 {
			all = append(all, fragment+"-"+strconv.Itoa(n))
		} else {
			all = append(all, fragment)
		}
		times[fragment]++
	}
	return all
}

// testNames returns the folders, relative to the root, in which each test of the
// repository is.
func testNames(t *testing.T) map[string][]string {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	names := map[string][]string{}
	for _, top := range []string{"api", "bench", "cmd", "e2e", "internal", "lab", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			for _, found := range declaration.FindAllStringSubmatch(read(t, path), -1) {
				names[found[1]] = append(names[found[1]], filepath.ToSlash(folder))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

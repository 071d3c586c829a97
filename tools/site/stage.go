package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The pages of the site: those of docs, and these of the root.
var rootPages = []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}

// index is the page whose tables are the navigation.
const index = "docs/README.md"

// stage copies the pages to a folder, each at its place, with all files that they link to, and writes
// mkdocs.yml beside the folder docs that it makes.
func stage(root, folder string) error {
	pages := slices.Clone(rootPages)
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(file) == ".md" {
			name, _ := filepath.Rel(root, file)
			pages = append(pages, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		return err
	}
	files := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return err
		}
		files[page] = true
		for _, target := range targets(string(text)) {
			if file := path.Join(path.Dir(page), target); !strings.HasPrefix(file, "../") {
				files[file] = true
			}
		}
	}
	for file := range files {
		if err := copyFile(filepath.Join(root, file), filepath.Join(folder, "docs", file)); err != nil {
			return fmt.Errorf("%s, to which a page links: %w", file, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, index))
	if err != nil {
		return err
	}
	if err := copyFile(filepath.Join(root, "tools/site/swdt.css"), filepath.Join(folder, "docs/assets/swdt.css")); err != nil {
		return err
	}
	settings, err := os.ReadFile(filepath.Join(root, "tools/site/mkdocs.yml"))
	if err != nil {
		return err
	}
	nav, err := json.Marshal(navigation(string(text))) // YAML reads JSON
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "mkdocs.yml"), fmt.Appendf(settings, "nav: %s\n", nav), 0o644)
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

// targets returns the files to which a page links.
func targets(text string) []string {
	var files []string
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(found[1], "://") {
			files = append(files, found[1])
		}
	}
	return files
}

// entry is an entry of mkdocs' navigation: a title, and a page or more entries.
type entry map[string]any

var row = regexp.MustCompile(`^\| \[([^]]+)\]\(([^)]+)\) \|`)

// navigation makes a section of each heading of the index, with the pages of the table below it.
func navigation(text string) []entry {
	nav := []entry{{"swdt": rootPages[0]}}
	section, pages := "", []entry{{"All pages": index}}
	end := func() {
		if section != "" {
			nav = append(nav, entry{section: pages})
			pages = nil
		}
	}
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			end()
			section, _, _ = strings.Cut(title, ":")
		}
		if found := row.FindStringSubmatch(line); found != nil {
			pages = append(pages, entry{found[1]: path.Join(path.Dir(index), found[2])})
		}
	}
	end()
	return append(nav, entry{"Project": []entry{
		{"Contributing": "CONTRIBUTING.md"}, {"Security": "SECURITY.md"}, {"Changes": "CHANGELOG.md"},
	}})
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

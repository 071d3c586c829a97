package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// document has the links of a page, and the names that links may lead to.
type document struct {
	links []string
	names []string // values of id and name
}

// check returns the links and sources of all pages of a built site that lead to no file of it, or to
// no element of a page. Links to other sites are not followed.
func check(site fs.FS) ([]string, error) {
	documents := map[string]document{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		file, err := site.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		root, err := html.Parse(file)
		documents[name] = read(root)
		return err
	})
	if err != nil {
		return nil, err
	}
	var problems []string
	for name, d := range documents {
		for _, target := range d.links {
			if problem := follow(site, documents, name, target); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", name, target, problem))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems), nil
}

func read(root *html.Node) document {
	var d document
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src":
				d.links = append(d.links, a.Val)
			case "id", "name":
				d.names = append(d.names, a.Val)
			}
		}
	}
	return d
}

// follow returns what is wrong with a link of a page; "": nothing.
func follow(site fs.FS, documents map[string]document, page, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	name := page
	switch {
	case strings.HasPrefix(u.Path, "/"):
		name = strings.Trim(u.Path, "/")
	case u.Path != "":
		name = path.Join(path.Dir(page), u.Path)
	}
	if name == "" {
		name = "."
	}
	info, err := fs.Stat(site, name)
	if err == nil && info.IsDir() {
		name = path.Join(name, "index.html")
		_, err = fs.Stat(site, name)
	}
	if err != nil {
		return "leads to no file"
	}
	if d, isPage := documents[name]; isPage && u.Fragment != "" && !slices.Contains(d.names, u.Fragment) {
		return "leads to no element"
	}
	return ""
}

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// Stdin is the source name for standard input.
const Stdin = "-"

// maxSize is the maximum size of a node file, in bytes. It is far larger than any real node
// file. Because of it, swdt does not read a whole binary that the user named by mistake.
const maxSize = 1 << 20

// HereSource is the node file of the working folder.
const HereSource = "swdt.yaml"

// IsHere reports whether a source of DefaultSource is that of the working folder.
func IsHere(source string) bool { return source == HereSource }

// DefaultSource returns the node file that is used if the user names none: swdt.yaml
// in the working folder, else config.yaml in a folder of localfile.ConfigFolders. The error is an *Error. If another
// account can change the file that was found, DefaultSource returns the file with an error: what it says is not the user's word.
func DefaultSource() (string, error) {
	candidates := []string{HereSource}
	folders, _ := localfile.ConfigFolders() // without a home folder, the working folder is left
	for _, folder := range folders {
		candidates = append(candidates, filepath.Join(folder, "config.yaml"))
	}
	for _, candidate := range candidates {
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() {
			return candidate, checkForeign(candidate)
		}
	}
	what := "there is no node file swdt.yaml here"
	if len(candidates) > 1 {
		what = "there is no node file: neither " + strings.Join(candidates, " nor ")
	}
	return "", &Error{[]Problem{{
		What:   what,
		Remedy: "name one with --config, or write one with `swdt config init --write`",
	}}}
}

// checkForeign returns an *Error if another account can change a file that swdt has found by itself.
func checkForeign(found string) error {
	err := localfile.CheckForeign(found)
	if err == nil {
		return nil
	}
	problem := Problem{File: found, What: fmt.Sprintf("was found, not named, and is not used: %v", err),
		Remedy: "if you trust it, name it: -c " + found}
	return &Error{[]Problem{problem}}
}

// Load reads every node of the sources. A source is a file, a folder (its *.yaml and
// *.yml files are read, sorted by name), or "-", which means stdin. The returned nodes have
// their defaults and are valid. If any source has a problem, Load returns no nodes, and an
// *Error with every problem of every source. Clusters in the sources are checked, but not
// returned.
func Load(sources []string, stdin io.Reader) ([]Document, error) {
	all, problems := loadAll(sources, stdin)
	if len(all.nodes) == 0 && len(problems) == 0 {
		problems = append(problems, noNode(sources))
	}
	if err := asError(problems); err != nil {
		return nil, err
	}
	return all.nodes, nil
}

// loadAll reads the documents of the sources, with their problems.
func loadAll(sources []string, stdin io.Reader) (contents, []Problem) {
	var all contents
	texts, problems := readAll(sources, stdin)
	for _, text := range texts {
		problems = append(problems, all.parse(text)...)
	}
	return all, append(problems, duplicateNames(all.nodes)...)
}

// source is a node file's name and text.
type source struct {
	file string
	data []byte
}

func readAll(sources []string, stdin io.Reader) (texts []source, problems []Problem) {
	files, problems := expand(sources)
	for _, file := range files {
		data, problem := read(file, stdin)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		texts = append(texts, source{file, data})
	}
	return texts, problems
}

// expand replaces each folder in sources by the node files in it.
func expand(sources []string) ([]string, []Problem) {
	var files []string
	var problems []Problem
	for _, name := range sources {
		if info, err := os.Stat(name); name == Stdin || err != nil || !info.IsDir() {
			files = append(files, name) // if the file cannot be read, read reports the reason later
			continue
		}
		inside, problem := filesIn(name)
		if problem != nil {
			problems = append(problems, *problem)
		}
		files = append(files, inside...)
	}
	var once []string
	for _, file := range files {
		if slices.Contains(once, file) {
			problems = append(problems, Problem{File: file, What: "is named twice", Remedy: "name it once"})
			continue
		}
		once = append(once, file)
	}
	return once, problems
}

func filesIn(folder string) ([]string, *Problem) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, unreadable(folder, err)
	}
	var files []string
	for _, entry := range entries { // sorted by name
		extension := strings.ToLower(filepath.Ext(entry.Name()))
		if !entry.IsDir() && (extension == ".yaml" || extension == ".yml") {
			files = append(files, filepath.Join(folder, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, &Problem{File: folder, What: "the folder has no *.yaml or *.yml file", Remedy: "name a node file"}
	}
	return files, nil
}

func read(file string, stdin io.Reader) ([]byte, *Problem) {
	reader := stdin
	if file != Stdin {
		opened, err := os.Open(file)
		if err != nil {
			return nil, unreadable(file, err)
		}
		defer opened.Close()
		reader = opened
	}
	if reader == nil {
		return nil, &Problem{File: file, What: "there is no standard input", Remedy: "name a file"}
	}
	data, err := io.ReadAll(io.LimitReader(reader, maxSize+1))
	switch {
	case err != nil:
		return nil, unreadable(file, err)
	case len(data) > maxSize:
		return nil, &Problem{File: file, What: fmt.Sprintf("is larger than %d KiB", maxSize>>10),
			Remedy: "name a node file"}
	}
	return data, nil
}

func unreadable(file string, err error) *Problem {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the message already names the file
	}
	return &Problem{File: file, What: fmt.Sprintf("cannot be read: %v", err),
		Remedy: "check the path and its permissions"}
}

func noNode(sources []string) Problem {
	problem := Problem{What: "there is no node in it", Remedy: "`swdt config init` writes a file to start from"}
	switch len(sources) {
	case 0:
		problem.What, problem.Remedy = "no node file was named", "name one with --config"
	case 1:
		problem.File, problem.Line = sources[0], 1
	default:
		problem.What = "there is no node in " + strings.Join(sources, ", ")
	}
	return problem
}

// duplicateNames returns a problem for each node that has the name of an earlier node, since
// --node could not distinguish the two.
func duplicateNames(documents []Document) (problems []Problem) {
	first := map[string]Document{}
	for _, document := range documents {
		name := document.Node.Metadata.Name
		if name == "" {
			continue
		}
		before, seen := first[name]
		if !seen {
			first[name] = document
			continue
		}
		problems = append(problems, Problem{
			File: document.File, Line: document.nameLine, Field: "metadata.name",
			What:   fmt.Sprintf("%s is the name of another node too (%s:%d)", name, before.File, before.nameLine),
			Remedy: "give each node a name of its own",
		})
	}
	return problems
}

// check applies the defaults to a decoded node and validates it.
func check(file string, node *v1alpha1.Node, lines map[string]int) (problems []Problem, warnings []string) {
	v1alpha1.SetDefaults(node)
	locate := func(p v1alpha1.Problem) Problem {
		return Problem{File: file, Line: lineOf(p.Field, lines), Field: p.Field, What: p.What, Remedy: p.Remedy}
	}
	for _, problem := range v1alpha1.Validate(node) {
		problems = append(problems, locate(problem))
	}
	for _, warning := range v1alpha1.Warnings(node) {
		warnings = append(warnings, locate(warning).String())
	}
	return problems, warnings
}

// lineOf returns the line of the field or, if the field is missing, of its nearest
// parent.
func lineOf(field string, lines map[string]int) int {
	for {
		if line, ok := lines[field]; ok || field == "" {
			return line
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
}

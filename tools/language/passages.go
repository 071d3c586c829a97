package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// passage is a paragraph of running text.
type passage struct {
	words  string
	starts []lineStart
}

// lineStart is the offset in a passage at which a line of the file begins.
type lineStart struct{ offset, line int }

// paragraph returns a passage of a single line.
func paragraph(words string) passage {
	var p passage
	p.add(1, words)
	return p
}

func (p *passage) add(line int, words string) {
	if p.words != "" {
		p.words += " "
	}
	p.starts = append(p.starts, lineStart{len(p.words), line})
	p.words += withoutQuotes(words)
}

// quotes matches quoted words: code, and the output of programs.
var quotes = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]*”")

// withoutQuotes replaces each byte of quoted text by an underscore, so that offsets stay the same.
func withoutQuotes(words string) string {
	return quotes.ReplaceAllStringFunc(words, func(quote string) string {
		return strings.Repeat("_", len(quote))
	})
}

// line returns the line of the file at an offset.
func (p *passage) line(offset int) int {
	i := sort.Search(len(p.starts), func(i int) bool { return p.starts[i].offset > offset })
	return p.starts[i-1].line
}

// span is a part of a passage.
type span struct{ from, to int }

var (
	sentenceEnd  = regexp.MustCompile(`[.!?][)\]*_]*\s+[(\[*_]*[A-Z]`)
	sentenceLead = regexp.MustCompile(`^[\s(\[*>]*`)
)

// sentences returns where each sentence begins and ends. A sentence ends with a
// full stop, question or exclamation mark that a capital letter follows.
func (p *passage) sentences() []span {
	var spans []span
	from := 0
	for _, end := range sentenceEnd.FindAllStringIndex(p.words, -1) {
		to := from + strings.LastIndexAny(p.words[from:end[1]], " \t\n")
		spans = append(spans, p.trimmed(from, to))
		from = to
	}
	return append(spans, p.trimmed(from, len(p.words)))
}

// trimmed leaves out the brackets and marks before the first word, and the space
// after the last.
func (p *passage) trimmed(from, to int) span {
	from += len(sentenceLead.FindString(p.words[from:to]))
	return span{from, from + len(strings.TrimRight(p.words[from:to], " \t\n"))}
}

// passages collects lines into passages.
type passages struct {
	done []passage
	open passage
}

// end ends the current passage.
func (p *passages) end() {
	if p.open.words != "" {
		p.done = append(p.done, p.open)
	}
	p.open = passage{}
}

var listItem = regexp.MustCompile(`^([-*+]|\d+[.)])\s+`)

// add adds a line. An empty line, or a line that begins a list item, ends the passage before that
// line.
func (p *passages) add(line int, words string) {
	words = strings.TrimSpace(words)
	if words == "" {
		p.end()
		return
	}
	if item := listItem.FindString(words); item != "" {
		p.end()
		words = words[len(item):]
	}
	p.open.add(line, words)
}

// readPassages returns the text of a file, according to the kind of file. It returns no text for
// kinds of files without text, and for generated files, whose text comes from other files.
func readPassages(path string) ([]passage, error) {
	slash := filepath.ToSlash(path)
	read := map[string]func(string, string) ([]passage, error){
		".go": goPassages, ".md": markdownPassages, ".proto": slashComments, ".sh": hashComments, "": hashComments,
	}[filepath.Ext(slash)]
	switch {
	case read == nil,
		filepath.Ext(slash) == "" && filepath.Base(slash) != "Makefile",
		strings.Contains(slash, "testdata/") && filepath.Ext(slash) == ".md",
		strings.HasPrefix(slash, "docs/reference/"), strings.HasPrefix(slash, "docs/rules/"):
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return read(path, string(text))
}

func goPassages(path, text string) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var all passages
	for _, group := range file.Comments {
		for _, comment := range group.List {
			addComment(&all, files.Position(comment.Pos()).Line, comment.Text)
		}
		all.end()
	}
	if !strings.HasSuffix(path, "_test.go") {
		addStrings(&all, files, file)
	}
	return all.done, nil
}

var directive = regexp.MustCompile(`^//([a-z0-9]+:[a-z0-9]|line |export |extern )`)

// addComment adds a comment of Go code, without directives and indented code.
func addComment(all *passages, first int, text string) {
	if directive.MatchString(text) {
		return
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/")
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimPrefix(line, "//")
		if strings.HasPrefix(line, "\t") {
			line = ""
		}
		all.add(first+i, line)
	}
}

// addStrings adds the strings of at least three words: help, messages and errors.
func addStrings(all *passages, files *token.FileSet, file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec, *ast.Field: // paths and tags
			return false
		case *ast.BinaryExpr:
			if parts := literals(node); len(parts) > 0 {
				addString(all, files, parts)
				return false
			}
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				addString(all, files, []*ast.BasicLit{node})
			}
		}
		return true
	})
}

// literals returns the string literals of a concatenation from left to right. If the concatenation
// contains anything else, literals returns none.
func literals(e ast.Expr) []*ast.BasicLit {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return []*ast.BasicLit{e}
		}
	case *ast.BinaryExpr:
		left, right := literals(e.X), literals(e.Y)
		if e.Op == token.ADD && left != nil && right != nil {
			return append(left, right...)
		}
	}
	return nil
}

func addString(all *passages, files *token.FileSet, parts []*ast.BasicLit) {
	var text strings.Builder
	for _, part := range parts {
		value, _ := strconv.Unquote(part.Value)
		text.WriteString(value)
	}
	if len(strings.Fields(text.String())) < 3 {
		return
	}
	for _, part := range parts {
		first := files.Position(part.Pos()).Line
		value, _ := strconv.Unquote(part.Value)
		raw := strings.HasPrefix(part.Value, "`")
		for i, line := range strings.Split(value, "\n") {
			if i > 0 && line == "" {
				all.end()
				continue
			}
			if !raw {
				i = 0
			}
			if strings.TrimSpace(line) != "" {
				all.add(first+i, line)
			}
		}
	}
	all.end()
}

// markdownPassages returns the text of a document without its code. Each heading and each cell of a
// table is a separate passage.
func markdownPassages(_, text string) ([]passage, error) {
	var all passages
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		words := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(words, "```"):
			fenced = !fenced
			all.end()
		case fenced:
		case all.open.words == "" && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")):
		case strings.HasPrefix(words, "#"):
			all.end()
			all.add(i+1, strings.TrimLeft(words, "# "))
			all.end()
		case strings.HasPrefix(words, "|"):
			for _, cell := range strings.Split(words, "|") {
				all.end()
				all.add(i+1, cell)
			}
			all.end()
		default:
			all.add(i+1, line)
		}
	}
	all.end()
	return all.done, nil
}

func slashComments(_, text string) ([]passage, error) { return lineComments(text, "//"), nil }
func hashComments(_, text string) ([]passage, error)  { return lineComments(text, "#"), nil }

// lineComments returns the comments that begin at the beginning of a line.
func lineComments(text, mark string) []passage {
	var all passages
	for i, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), mark)
		if !ok {
			comment = ""
		}
		all.add(i+1, comment)
	}
	all.end()
	return all.done
}

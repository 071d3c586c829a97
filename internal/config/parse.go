package config

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// maxProblems in one file are enough; nobody reads more.
const maxProblems = 100

// parse reads all documents of one file. Documents that are wrong but readable
// are returned too: what spans documents is checked all the same.
func parse(text source) (documents []Document, problems []Problem) {
	data, err := toUTF8(text.data)
	if err != nil {
		return nil, []Problem{{File: text.file, Line: 1, What: err.Error(), Remedy: "save it as UTF-8 text"}}
	}
	for _, chunk := range splitDocuments(data) {
		if len(problems) >= maxProblems {
			return documents, append(problems, Problem{
				File: text.file, Line: chunk.first, What: "there may be more problems from here on", Remedy: "mend those above first",
			})
		}
		root, problem := parseYAML(text.file, chunk)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		if root == nil {
			continue // nothing but comments
		}
		document, found := decodeDocument(text.file, chunk, root)
		problems = append(problems, found...)
		if document != nil {
			documents = append(documents, *document)
		}
	}
	return documents, problems
}

// chunk is the text of one YAML document.
type chunk struct {
	lines []string // with their line ends
	first int      // line number of lines[0], from 1
}

func (c chunk) text() string { return strings.Join(c.lines, "") }

// line is the line of the file with that number, without its end.
func (c chunk) line(number int) string {
	i := number - c.first
	if i < 0 || i >= len(c.lines) {
		return ""
	}
	return strings.TrimRight(c.lines[i], "\r\n")
}

// lineNumber turns a line within the chunk, as the YAML parser counts, into one
// of the file.
func (c chunk) lineNumber(within int) int {
	return c.first + min(max(within, 1), max(len(c.lines), 1)) - 1
}

// splitDocuments cuts a file at its --- lines, which YAML allows nowhere else.
// So a document that does not parse hides no problem of the next, and a line is
// found by reading beginnings of one document.
func splitDocuments(data string) []chunk {
	var chunks []chunk
	current := chunk{first: 1}
	begun := false // something other than comments and %directives was seen
	number := 0
	for line := range strings.SplitAfterSeq(data, "\n") {
		number++
		if line == "" {
			continue
		}
		if isDocumentStart(line) && begun {
			chunks = append(chunks, current)
			current, begun = chunk{first: number}, false
		}
		trimmed := strings.TrimSpace(line)
		begun = begun || trimmed != "" && trimmed[0] != '#' && trimmed[0] != '%'
		current.lines = append(current.lines, line)
	}
	return append(chunks, current)
}

func isDocumentStart(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// parseYAML returns the document's root, nil if there is nothing in it.
func parseYAML(file string, c chunk) (*yaml.Node, *Problem) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(c.text()), &document); err != nil {
		problem := explainSyntax(c, err)
		problem.File = file
		return nil, &problem
	}
	if len(document.Content) == 0 || isNull(document.Content[0]) {
		return nil, nil
	}
	return document.Content[0], nil
}

// decodeDocument makes a node of a document. The node is nil if it is of another
// kind; what else is wrong with it is then nobody's concern.
func decodeDocument(file string, c chunk, root *yaml.Node) (*Document, []Problem) {
	if problem := checkKind(file, c, root); problem != nil {
		return nil, []Problem{*problem}
	}
	d := decoder{file: file, chunk: c, lines: map[string]int{}}
	document := Document{File: file, Line: c.lineNumber(root.Line)}
	d.decode(root, &document.Node)
	problems, warnings := check(file, &document.Node, d.lines)
	document.Warnings = append(d.warnings, warnings...)
	document.nameLine, document.lines = lineOf("metadata.name", d.lines), d.lines
	document.OtherMeanings = otherMeanings(file, c, root)
	return &document, merge(d.problems, problems)
}

// merge adds what validation found to what decoding found, except where it is
// about a field that could not be decoded, and so looks empty.
func merge(decoding, validation []Problem) []Problem {
	reported := map[string]bool{}
	for _, problem := range decoding {
		reported[problem.Field] = true
	}
	for _, problem := range validation {
		if !isReported(problem.Field, reported) {
			decoding = append(decoding, problem)
		}
	}
	return decoding
}

// isReported is whether the field, or anything around it, has a problem.
func isReported(field string, reported map[string]bool) bool {
	for field != "" {
		if reported[field] {
			return true
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return reported[""]
}

// checkKind tells nodes from everything else that may stand in a YAML file.
func checkKind(file string, c chunk, root *yaml.Node) *Problem {
	problem := func(n *yaml.Node, field, what, remedy string) *Problem {
		return &Problem{File: file, Line: c.lineNumber(n.Line), Field: field, What: what, Remedy: remedy}
	}
	if root.Kind != yaml.MappingNode {
		return problem(root, "", "is "+describe(root)+", not a node", "`swdt config init` writes a file to start from")
	}
	apiVersion, kind := child(root, "apiVersion"), child(root, "kind")
	understood := fmt.Sprintf("write apiVersion: %s and kind: %s", v1alpha1.APIVersion, v1alpha1.Kind)
	switch {
	case kind == nil || isNull(kind):
		return problem(orNode(kind, root), "kind", "is missing", understood)
	case olderFormat(root) == clusterFormat || olderFormat(root) == configFormat:
		return problem(kind, "kind", kind.Value+" is the format of an older swdt",
			fmt.Sprintf("`swdt config convert %s` writes it as %s", file, v1alpha1.Kind))
	case apiVersion == nil || isNull(apiVersion):
		return problem(orNode(apiVersion, root), "apiVersion", "is missing", understood)
	case apiVersion.Value != v1alpha1.APIVersion:
		return problem(apiVersion, "apiVersion", quote(apiVersion)+" is not understood", understood)
	case kind.Value != v1alpha1.Kind:
		return problem(kind, "kind", quote(kind)+" is not understood", understood)
	}
	return nil
}

func quote(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return describe(n)
	}
	return fmt.Sprintf("%.60q", n.Value)
}

func orNode(n, otherwise *yaml.Node) *yaml.Node {
	if n == nil {
		return otherwise
	}
	return n
}

// child is the value of a mapping's key, or nil.
func child(mapping *yaml.Node, key string) *yaml.Node {
	_, value := pair(mapping, key)
	return value
}

// pair is a mapping's key of that name and its value, or nil.
func pair(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], resolveAlias(mapping.Content[i+1])
		}
	}
	return nil, nil
}

// toUTF8 undoes what Windows editors do to text: byte order marks, UTF-16.
func toUTF8(data []byte) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return fromUTF16(data[2:], binary.BigEndian)
	}
	data = bytes.TrimPrefix(data, []byte{0xef, 0xbb, 0xbf})
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", fmt.Errorf("the file is not text")
	}
	return oneLineEnd(string(data)), nil
}

// oneLineEnd makes \n of what else ends a line in YAML, so that line numbers are
// those of the parser.
func oneLineEnd(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

func fromUTF16(data []byte, order binary.ByteOrder) (string, error) {
	if len(data)%2 != 0 {
		return "", fmt.Errorf("the file is not text")
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return oneLineEnd(string(utf16.Decode(units))), nil
}

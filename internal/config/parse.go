package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// maxProblems bounds the problems that are reported for one file. More problems do not help
// the user.
const maxProblems = 100

// contents are the documents of node files.
type contents struct {
	nodes    []Document
	clusters []ClusterDocument
}

// parse adds all documents of one file. It also adds documents that are readable but wrong, so
// that the checks across documents include them.
func (c *contents) parse(text source) (problems []Problem) {
	data, problem := decodeText(text.file, text.data)
	if problem != nil {
		return []Problem{*problem}
	}
	for _, chunk := range splitDocuments(data) {
		if len(problems) >= maxProblems {
			return append(problems, Problem{
				File: text.file, Line: chunk.first, What: "there may be more problems from here on",
				Remedy: "correct the problems above first",
			})
		}
		root, problem := parseYAML(text.file, chunk)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		if root == nil {
			continue // the document contains only comments
		}
		problems = append(problems, c.decode(text.file, chunk, root)...)
	}
	return problems
}

// decodeText returns the text of a node file.
func decodeText(file string, data []byte) (string, *Problem) {
	text, err := windowstext.Decode(data)
	var unreadable *windowstext.Error
	if errors.As(err, &unreadable) {
		return "", &Problem{File: file, Line: unreadable.Line, What: unreadable.Problem(), Remedy: windowstext.Remedy}
	}
	return text.Content, nil
}

// chunk is the text of one YAML document.
type chunk struct {
	lines []string // with their line ends
	first int      // line number of lines[0], starting at 1
}

func (c chunk) text() string { return strings.Join(c.lines, "") }

// line returns the line with that number in the file, without its line end.
func (c chunk) line(number int) string {
	i := number - c.first
	if i < 0 || i >= len(c.lines) {
		return ""
	}
	return strings.TrimRight(c.lines[i], "\r\n")
}

// lineNumber converts a line number of the YAML parser, which counts within the chunk, to a
// line number of the file.
func (c chunk) lineNumber(within int) int {
	return c.first + min(max(within, 1), max(len(c.lines), 1)) - 1
}

// splitDocuments splits a file at its --- lines, which cannot occur inside a YAML document. So a
// document that does not parse does not hide the problems of the next document, and the search
// for a bad line has to parse only one document.
func splitDocuments(data string) []chunk {
	var chunks []chunk
	current := chunk{first: 1}
	begun := false // true after the first line that is neither a comment nor a %directive
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

// parseYAML returns the root node of a document, or nil if the document is empty.
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

// decode adds a document and returns its problems. If the document is neither a node nor a
// cluster, decode does not add it, and returns only that problem.
func (c *contents) decode(file string, text chunk, root *yaml.Node) []Problem {
	if problem := checkKind(file, text, root); problem != nil {
		return []Problem{*problem}
	}
	d := &decoder{file: file, chunk: text, lines: map[string]int{}, blocks: map[string]int{}}
	if child(root, "kind").Value == v1alpha1.ClusterKind {
		cluster, problems := decodeCluster(d, root)
		c.clusters = append(c.clusters, cluster)
		return problems
	}
	node, problems := decodeNode(d, root)
	node.OtherMeanings = otherMeanings(file, text, root)
	c.nodes = append(c.nodes, node)
	return problems
}

func decodeNode(d *decoder, root *yaml.Node) (Document, []Problem) {
	document := Document{File: d.file, Line: d.chunk.lineNumber(root.Line)}
	d.decode(root, &document.Node)
	d.checkNested(document.Node.Spec.Kubernetes)
	problems, warnings := check(d.file, &document.Node, d.lines)
	document.Warnings = append(d.warnings, warnings...)
	document.nameLine, document.lines = lineOf("metadata.name", d.lines), d.lines
	return document, merge(d.problems, problems)
}

// merge appends the problems of validation to those of decoding. It omits a validation
// problem if decoding already reported that field: such a field looks empty to validation.
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

// isReported reports whether the field, or any of its parents, already has a problem.
func isReported(field string, reported map[string]bool) bool {
	for field != "" {
		if reported[field] {
			return true
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return reported[""]
}

// checkKind returns a problem for a document that is neither a node nor a cluster, since a
// YAML file may contain documents of any kind.
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
	case olderFormat(root) == configFormat:
		return problem(kind, "kind", kind.Value+" is the format of an older swdt",
			fmt.Sprintf("`swdt config convert %s` writes it as %s", file, v1alpha1.Kind))
	case olderFormat(root) == clusterFormat:
		return problem(kind, "kind", "this "+kind.Value+" is the format of an older swdt",
			fmt.Sprintf("`swdt config convert %s` writes it as %s and %s", file, v1alpha1.ClusterKind, v1alpha1.Kind))
	case apiVersion == nil || isNull(apiVersion):
		return problem(orNode(apiVersion, root), "apiVersion", "is missing", understood)
	case strings.HasPrefix(apiVersion.Value, "kind.x-k8s.io/"):
		return problem(apiVersion, "apiVersion", apiVersion.Value+" is a configuration of kind, which swdt writes itself",
			"`swdt cluster init` writes a Cluster of swdt to start from")
	case apiVersion.Value != v1alpha1.APIVersion:
		return problem(apiVersion, "apiVersion", quote(apiVersion)+" is not understood", understood)
	case kind.Value != v1alpha1.Kind && kind.Value != v1alpha1.ClusterKind:
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

// child returns the value of a mapping's key, or nil.
func child(mapping *yaml.Node, key string) *yaml.Node {
	_, value := pair(mapping, key)
	return value
}

// pair returns the key of a mapping that has this name, and the key's value. If there is no such
// key, both are nil.
func pair(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], resolveAlias(mapping.Content[i+1])
		}
	}
	return nil, nil
}

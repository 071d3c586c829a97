package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the number of YAML nodes, since aliases of aliases can expand without end.
const maxNodes = 50_000

// decoder fills the types of api/v1alpha1 from YAML, strictly, and records the line of each
// field. The yaml package's own decoding stops at the first wrong key, loses line numbers,
// and guesses types. This decoder reads version: 1.30 as the text "1.30", not as the number
// 1.3.
type decoder struct {
	file     string
	chunk    chunk
	document reflect.Type
	lines    map[string]int // by field path
	blocks   map[string]int // the first lines of texts that are blocks of lines (|), by field path
	problems []Problem
	warnings []string
	visited  int
}

func (d *decoder) decode(root *yaml.Node, into any) {
	v := reflect.ValueOf(into).Elem()
	d.document = v.Type()
	d.value(root, v, "")
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	line := d.chunk.lineNumber(n.Line)
	if _, known := d.lines[path]; !known {
		d.lines[path] = line
	}
	if d.visited++; d.visited >= maxNodes {
		if d.visited == maxNodes {
			d.problem(n, path, "the document is too large once its aliases are expanded", "write it without aliases")
		}
		return
	}
	n = resolveAlias(n)
	if isNull(n) {
		d.warnOfComment(n, path)
		return // an empty value counts as missing: `privateKey:` leaves the field unset
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, text, path)
		return
	}
	if either, ok := v.Addr().Interface().(textOrList); ok {
		d.textOrList(n, either, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	case reflect.Interface:
		d.anything(n, v, path)
	case reflect.Bool:
		d.boolean(n, v, path)
	case reflect.Int:
		d.integer(n, v, path)
	case reflect.Uint32:
		d.unsigned(n, v, path)
	case reflect.String:
		if d.isScalar(n, path, "a text") && !d.hasStrayEscape(n, path) {
			v.SetString(n.Value)
			if n.Style&yaml.LiteralStyle != 0 {
				d.blocks[path] = d.chunk.lineNumber(n.Line) + 1
			}
		}
	default:
		// A field of api/v1alpha1 has a type that this switch does not handle. Any test that
		// decodes the field reaches this line.
		panic("config: no decoding for " + v.Type().String())
	}
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "fields ("+strings.Join(fields.names, ", ")+")")
		return
	}
	named := func(key string) string {
		if _, known := fields.index[key]; known {
			return join(path, key)
		}
		return path
	}
	d.pairs(n, path, named, func(key string, keyNode, value *yaml.Node) {
		index, known := fields.index[key]
		if !known {
			d.unknownField(keyNode, path, key, fields.names)
			return
		}
		d.lines[join(path, key)] = d.chunk.lineNumber(keyNode.Line)
		d.value(value, v.Field(index), join(path, key))
	})
}

// unknownField reports an unknown field by its name. It omits each part of the name that may be
// a secret, such as a password that follows a colon without a space, or a password in the place
// of a field.
func (d *decoder) unknownField(n *yaml.Node, path, key string, known []string) {
	lower := strings.ToLower(key)
	switch field := fieldWithoutSpace(key + " "); {
	case field != "":
		d.problem(n, join(path, field), "has no space after its colon", "put one there")
	case strings.HasPrefix(lower, "passw") || strings.HasPrefix(lower, "passph") || strings.HasSuffix(path, "From"):
		d.problem(n, path, "has an unknown field", suggest(key, known))
	case join(path, key) == "spec.kubernetes.deploys":
		d.problem(n, join(path, key), "is a field of an older swdt",
			fmt.Sprintf("`swdt config convert %s` writes it as provisioners", d.file))
	default:
		d.problem(n, join(path, displayKey(key)), "unknown field", suggestField(d.document, key, known))
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "a mapping of names to values")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	named := func(key string) string { return fmt.Sprintf("%s[%s]", path, key) } // as in v1alpha1.Validate's problems
	d.pairs(n, path, named, func(key string, keyNode, value *yaml.Node) {
		field := named(key)
		d.lines[field] = d.chunk.lineNumber(keyNode.Line)
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(value, element, field)
		v.SetMapIndex(reflect.ValueOf(key), element)
	})
}

// pairs passes the pairs of a mapping to each, one at a time. Pairs of merged mappings (<<) come
// last, and only if the mapping itself does not have their key. If a key has a problem, pairs
// calls named for the field under which to report the problem.
func (d *decoder) pairs(n *yaml.Node, path string, named func(key string) string,
	each func(key string, keyNode, value *yaml.Node)) {
	seen := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolveAlias(n.Content[i]), n.Content[i+1]
		switch {
		case isMerge(key):
			merged = append(merged, value)
			continue
		case key.Kind != yaml.ScalarNode || isNull(key):
			d.problem(n.Content[i], path, "has a key that is no text", "write a field's name before the colon")
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.problem(n.Content[i], named(key.Value), fmt.Sprintf("is set twice, first on line %d", line),
				"remove one of them")
			continue
		}
		seen[key.Value] = d.chunk.lineNumber(n.Content[i].Line)
		each(key.Value, n.Content[i], value)
	}
	for _, value := range merged {
		d.merge(value, path, seen, each)
	}
}

// merge does for merged mappings (<<: *other, or <<: [*one, *another]) what pairs does for the
// mapping itself. It omits pairs whose keys are already in seen.
func (d *decoder) merge(value *yaml.Node, path string, seen map[string]int,
	each func(key string, keyNode, value *yaml.Node)) {
	sources := []*yaml.Node{value}
	if resolved := resolveAlias(value); resolved.Kind == yaml.SequenceNode {
		sources = resolved.Content
	}
	for _, source := range sources {
		mapping := resolveAlias(source)
		if mapping.Kind != yaml.MappingNode {
			d.problem(source, path, "<< merges "+describe(mapping), "merge a mapping")
			continue
		}
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			key := resolveAlias(mapping.Content[i])
			if _, own := seen[key.Value]; own || key.Kind != yaml.ScalarNode || isMerge(key) {
				continue
			}
			seen[key.Value] = d.chunk.lineNumber(source.Line)
			each(key.Value, mapping.Content[i], mapping.Content[i+1])
		}
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, "a list (each item begins with - )")
		return
	}
	for i, item := range n.Content {
		if d.visited >= maxNodes {
			return
		}
		field := fmt.Sprintf("%s[%d]", path, i)
		element := reflect.New(v.Type().Elem()).Elem()
		if isNull(resolveAlias(item)) {
			d.problem(item, field, "is empty", "write the item or remove the dash")
		}
		d.value(item, element, field)
		v.Set(reflect.Append(v, element)) // append even a wrong element, so that the indices in paths stay right
	}
}

// hasStrayEscape reports whether double quotes turned a Windows backslash into a control
// character: "CORP\bob" contains a backspace. If so, it records a problem. Line breaks and tabs
// count only in the fields of backslashFields; in other fields the user may intend them.
func (d *decoder) hasStrayEscape(n *yaml.Node, path string) bool {
	field := path[strings.LastIndexByte(path, '.')+1:]
	stray := strings.ContainsFunc(n.Value, func(r rune) bool {
		return unicode.IsControl(r) && (!strings.ContainsRune("\t\n\r", r) || slices.Contains(backslashFields(), field))
	})
	if n.Style&yaml.DoubleQuotedStyle == 0 || !stray {
		return false
	}
	_, written := cutKey(d.chunk.line(d.chunk.lineNumber(n.Line)))
	d.problem(n, path, "has a control character: in double quotes a backslash begins an escape",
		inSingleQuotes(field, written))
	return true
}

// textOrList is a value that may be written as a text or as a list.
type textOrList interface {
	SetText(text string)
	SetList(items []string)
}

func (d *decoder) textOrList(n *yaml.Node, into textOrList, path string) {
	switch {
	case n.Kind == yaml.SequenceNode:
		list := []string{}
		d.sequence(n, reflect.ValueOf(&list).Elem(), path)
		into.SetList(list)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		into.SetText(n.Value) // a script of several lines
	case d.isScalar(n, path, "a text or a list (each item begins with - )"):
		into.SetText(n.Value)
	}
}

// anything decodes a value whose fields swdt does not define, such as a field of
// KubeletConfiguration.
func (d *decoder) anything(n *yaml.Node, v reflect.Value, path string) {
	var value any
	if err := n.Decode(&value); err != nil {
		d.problem(n, path, "cannot be read as YAML", "write it as in a YAML file of its own")
		return
	}
	if value != nil {
		v.Set(reflect.ValueOf(value))
	}
	d.locate(n, path)
}

// locate records the lines of the fields within a value whose fields swdt does not define.
func (d *decoder) locate(n *yaml.Node, path string) {
	at := func(path string, n, value *yaml.Node) {
		d.lines[path] = d.chunk.lineNumber(n.Line)
		if value.Kind != yaml.AliasNode { // an alias may lead into itself
			d.locate(value, path)
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at(join(path, n.Content[i].Value), n.Content[i], n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			at(fmt.Sprintf("%s[%d]", path, i), item, item)
		}
	}
}

func (d *decoder) boolean(n *yaml.Node, v reflect.Value, path string) {
	var b bool
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&b) != nil {
		d.wrongType(n, path, "true or false (without quotes)")
		return
	}
	v.SetBool(b)
}

func (d *decoder) integer(n *yaml.Node, v reflect.Value, path string) {
	var i int32
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&i) != nil {
		d.wrongType(n, path, "a whole number (without quotes)")
		return
	}
	v.SetInt(int64(i))
}

func (d *decoder) unsigned(n *yaml.Node, v reflect.Value, path string) {
	var u uint32
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&u) != nil {
		d.wrongType(n, path, "a whole number from 0 to 4294967295 (without quotes)")
		return
	}
	v.SetUint(uint64(u))
}

func (d *decoder) text(n *yaml.Node, into encoding.TextUnmarshaler, path string) {
	if !d.isScalar(n, path, "a text") {
		return
	}
	if err := into.UnmarshalText([]byte(n.Value)); err != nil {
		d.problem(n, path, err.Error(), "write a number with its unit")
	}
}

// isScalar reports whether n is a scalar on one line. A number counts too, since it can be
// read as text. If isScalar returns false, it has recorded a problem.
func (d *decoder) isScalar(n *yaml.Node, path, wanted string) bool {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.wrongType(n, path, wanted)
	case n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str":
		// The message omits the tag, which may be a password that begins with !.
		d.problem(n, path, "begins with !, which is a tag to YAML", "put the value in single quotes")
	case n.Style == 0 && !strings.Contains(d.chunk.line(d.chunk.lineNumber(n.Line)), n.Value):
		d.problem(n, path, "goes on in the next line, which YAML joins to it",
			"align the next field or dash with its neighbours, or write the value on one line")
	default:
		return true
	}
	return false
}

func (d *decoder) wrongType(n *yaml.Node, path, wanted string) {
	remedy := "write " + wanted
	if field := fieldWithoutSpace(n.Value); n.Kind == yaml.ScalarNode && field != "" {
		remedy = fmt.Sprintf("put a space after %s:", field)
	}
	d.problem(n, path, "is "+describe(n), remedy)
}

// warnOfComment warns if a password begins with #, since YAML reads such a password as a comment.
func (d *decoder) warnOfComment(n *yaml.Node, path string) {
	if n.Kind != yaml.ScalarNode || !strings.HasSuffix(path, "assword") {
		return
	}
	if _, value, _ := strings.Cut(d.chunk.line(d.chunk.lineNumber(n.Line)),
		":"); strings.HasPrefix(strings.TrimSpace(value), "#") {
		d.warnings = append(d.warnings, Problem{
			File: d.file, Line: d.chunk.lineNumber(n.Line), Field: path,
			What: "is empty: to YAML, what follows # is a comment", Remedy: "put the value in single quotes",
		}.String())
	}
}

func (d *decoder) problem(n *yaml.Node, path, what, remedy string) {
	d.problems = append(d.problems, Problem{
		File: d.file, Line: d.chunk.lineNumber(n.Line), Field: path, What: what, Remedy: remedy,
	})
}

// describe returns the kind of a YAML value, without its content.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!bool":
		return "true or false"
	case n.ShortTag() == "!!int" || n.ShortTag() == "!!float":
		return "a number"
	}
	return "a text"
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && n.Alias != nil && hops < 100; hops++ {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func isMerge(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge" }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// displayKey returns a key for messages: on one line and of limited length.
func displayKey(key string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(key) > 80 || strings.ContainsFunc(key, odd) {
		return fmt.Sprintf("%.80q", key)
	}
	return key
}

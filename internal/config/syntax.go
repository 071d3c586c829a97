package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// explainSyntax describes why a document does not parse, on which line, and how to
// correct the mistake. The parser reports the line at which it gave up, which is often far
// below the mistake, and its message is about tokens. So explainSyntax searches for the first
// bad line without the parser's message, and checks that line for common mistakes.
func explainSyntax(c chunk, parseError error) Problem {
	number := firstBadLine(c)
	for _, look := range slips() {
		if slip := look(c, number); slip != nil {
			return *slip
		}
	}
	// Remove the parser's quotations of the file, which may contain a secret.
	message := regexp.MustCompile(`^yaml: (line \d+: )?|'[^']*'`).ReplaceAllString(parseError.Error(), "")
	return Problem{Line: number, What: "this is not valid YAML: " + message,
		Remedy: "see this line and the one above it"}
}

// firstBadLine returns the line that makes the document invalid: the text up to and
// including that line does not parse, no matter how many of the following lines are added.
// (A text that ends within quotes or brackets does not parse either, but parses once more
// lines are added.)
func firstBadLine(c chunk) int {
	const budget = 4 << 20 // bytes to parse; a node file needs some thousands
	parsed := 0
	fails := func(count int) bool {
		text := strings.Join(c.lines[:count], "")
		parsed += len(text) + 1
		var ignored yaml.Node
		return yaml.Unmarshal([]byte(text), &ignored) != nil
	}

	good, total := 0, len(c.lines) // the first good lines parse without an error, but all lines together do not
	for parsed < budget {
		bad := total
		for good+1 < bad && parsed < budget { // bisect until bad is good+1
			if middle := (good + bad) / 2; fails(middle) {
				bad = middle
			} else {
				good = middle
			}
		}
		recovered := false
		for count := bad + 1; count < total && parsed < budget; count++ {
			if !fails(count) {
				good, recovered = count, true
				break
			}
		}
		if !recovered {
			break
		}
	}
	return c.lineNumber(good + 1)
}

// slips returns functions that each look for one common mistake, the most certain first.
// Each checks the bad line, or the line above it, and returns nil if it finds nothing.
func slips() []func(c chunk, number int) *Problem {
	return []func(chunk, int) *Problem{
		conflictMarker, tabIndent, badEscape, strayColon, noSpaceAfterColon, noSpaceAfterDash,
		openQuote, reservedStart, badItemIndent, badIndent, openBracket, noColon,
	}
}

func conflictMarker(c chunk, number int) *Problem {
	for _, candidate := range []int{number, above(c, number)} {
		for _, marker := range []string{"<<<<<<<", "=======", ">>>>>>>"} {
			if strings.HasPrefix(c.line(candidate), marker) {
				return &Problem{Line: candidate, What: "the line marks a merge conflict", Remedy: "resolve it with git"}
			}
		}
	}
	return nil
}

func tabIndent(c chunk, number int) *Problem {
	text := c.line(number)
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	if !strings.Contains(indent, "\t") {
		return nil
	}
	return &Problem{Line: number, What: "the line is indented with a tab, which YAML forbids",
		Remedy: "indent with spaces"}
}

// badEscape finds backslashes in double quotes, as in a Windows path or DOMAIN\user.
func badEscape(c chunk, number int) *Problem {
	key, value := cutKey(c.line(number))
	if !strings.HasPrefix(value, `"`) {
		return nil
	}
	for i := 1; i+1 < len(value) && value[i] != '"'; i++ {
		if value[i] != '\\' {
			continue
		}
		if i++; !isEscape(value[i:]) {
			return &Problem{Line: number,
				What:   fmt.Sprintf(`%s has a backslash in double quotes, where it begins an escape`, valueOf(key)),
				Remedy: inSingleQuotes(key, value)}
		}
	}
	return nil
}

// isEscape reports whether text begins with characters that may follow a backslash in
// double quotes.
func isEscape(text string) bool {
	digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[0]]
	if !ok {
		return strings.IndexByte(`0abtnvfre "/\N_LP`+"\t", text[0]) >= 0
	}
	if len(text) <= digits {
		return false
	}
	_, err := strconv.ParseUint(text[1:digits+1], 16, 32)
	return err == nil
}

// inSingleQuotes returns the remedy for a value with backslashes. The remedy includes the value
// only if the field is one of backslashFields, since these hold no secrets.
func inSingleQuotes(key, value string) string {
	text, _, closed := strings.Cut(strings.TrimPrefix(value, `"`), `"`)
	if !closed || !slices.Contains(backslashFields(), key) {
		return `use single quotes, or none, as in c:\k\kubelet.exe`
	}
	return "write '" + strings.ReplaceAll(text, "'", "''") + "', in single quotes"
}

// backslashFields returns the fields whose values have Windows backslashes and are not
// secret.
func backslashFields() []string {
	return []string{"username", "hostname", "destination", "sourceURL", "privateKey", "path", "folder"}
}

func strayColon(c chunk, number int) *Problem {
	key, value := cutKey(c.line(number))
	if key == "" || value == "" || strings.ContainsRune(`"'[{|>#&*!`, rune(value[0])) {
		return nil
	}
	value = withoutComment(value)
	switch {
	case strings.HasSuffix(value, ":"):
		return &Problem{Line: number, What: valueOf(key) + " ends in a colon",
			Remedy: "remove the colon at the end of the line"}
	case strings.Contains(value, ": "):
		return &Problem{Line: number, What: valueOf(key) + " has a colon and a space in it, which begin another value",
			Remedy: "put the value in single quotes, or a line break before the second field"}
	}
	return nil
}

func noSpaceAfterColon(c chunk, number int) *Problem {
	for _, candidate := range []int{number, above(c, number)} {
		text := strings.TrimPrefix(strings.TrimSpace(c.line(candidate)), "- ")
		if field := fieldWithoutSpace(text); field != "" {
			return &Problem{Line: candidate, What: "there is no space after " + field + ":", Remedy: "put one there"}
		}
	}
	return nil
}

func noSpaceAfterDash(c chunk, number int) *Problem {
	for _, candidate := range []int{number, above(c, number)} {
		rest, ok := strings.CutPrefix(strings.TrimSpace(c.line(candidate)), "-")
		if key, _, found := strings.Cut(rest, ":"); ok && found && knownFields()[key] {
			return &Problem{Line: candidate, What: "there is no space after the dash", Remedy: "put one there"}
		}
	}
	return nil
}

func openQuote(c chunk, number int) *Problem {
	key, value := cutKey(c.line(number))
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return nil
	}
	quote := value[:1]
	if end := strings.LastIndex(value[1:], quote); end < 0 {
		return &Problem{Line: number, What: valueOf(key) + " begins with a quote that is not closed",
			Remedy: "add the quote at its end"}
	}
	return &Problem{Line: number, What: valueOf(key) + " goes on after its closing quote",
		Remedy: "put the whole value in quotes; a single quote in single quotes is written twice"}
}

func reservedStart(c chunk, number int) *Problem {
	key, value := cutKey(c.line(number))
	if value == "" || !strings.ContainsRune("@`%*&!|>,]}?", rune(value[0])) {
		return nil
	}
	return &Problem{Line: number,
		What:   fmt.Sprintf("%s begins with %c, which has a meaning of its own in YAML", valueOf(key), value[0]),
		Remedy: "put the value in single quotes"}
}

func openBracket(c chunk, number int) *Problem {
	key, value := cutKey(c.line(number))
	if value == "" || value[0] != '[' && value[0] != '{' {
		return nil
	}
	return &Problem{Line: number, What: fmt.Sprintf("%s begins with %c and is not closed well", valueOf(key), value[0]),
		Remedy: "close the bracket, put commas between the items, or quote the value"}
}

// badItemIndent finds a list item whose indentation differs from that of the items before it.
func badItemIndent(c chunk, number int) *Problem {
	if !isItem(c.line(number)) {
		return nil
	}
	indent := indentOf(c.line(number))
	for p := above(c, number); p != 0; p = above(c, p) {
		at := indentOf(c.line(p))
		if at < indent || at == indent && !isItem(c.line(p)) {
			for next := p + 1; next < number; next++ {
				if isItem(c.line(next)) {
					return &Problem{Line: number,
						What: fmt.Sprintf("the item's dash is indented by %s, the dash of line %d by %d", spaces(indent),
							next, indentOf(c.line(next))),
						Remedy: "align the dashes of a list"}
				}
			}
			return nil
		}
	}
	return nil
}

func isItem(line string) bool { return strings.HasPrefix(strings.TrimSpace(line)+" ", "- ") }

func spaces(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}

func badIndent(c chunk, number int) *Problem {
	previous := above(c, number)
	if previous == 0 {
		return nil
	}
	indent, indentAbove := indentOf(c.line(number)), indentOf(c.line(previous))
	if _, value := cutKey(c.line(previous)); indent > indentAbove && withoutComment(value) != "" {
		return &Problem{Line: number, What: "the line is indented deeper than the one above, which has a value already",
			Remedy: "align fields of the same level"}
	}
	for p := previous; p != 0; p = above(c, p) {
		switch at := indentOf(c.line(p)); {
		case at == indent && at != indentAbove:
			return nil // the line is aligned with an earlier line, so the cause is not the indentation
		case at < indent && indent < indentAbove:
			return &Problem{Line: number,
				What:   fmt.Sprintf("the line is indented by %s, which lines up with nothing above it", spaces(indent)),
				Remedy: "align fields of the same level"}
		}
	}
	return nil
}

func noColon(c chunk, number int) *Problem {
	for _, candidate := range []int{number, above(c, number)} {
		text := withoutComment(strings.TrimPrefix(strings.TrimSpace(c.line(candidate)), "- "))
		if text != "" && text != "-" && text != "---" && !strings.Contains(text, ":") {
			return &Problem{Line: candidate, What: "there is no colon in the line", Remedy: "write field: value"}
		}
	}
	return nil
}

// cutKey splits "- key: value" into key and value. If the line has no key, value is the
// whole text.
func cutKey(line string) (key, value string) {
	text := strings.TrimSpace(line)
	for {
		item, ok := strings.CutPrefix(text, "- ")
		if !ok {
			break
		}
		text = strings.TrimSpace(item)
	}
	if text == "" || strings.ContainsRune(`"'[{#`, rune(text[0])) {
		return "", text
	}
	if field, ok := strings.CutSuffix(text, ":"); ok && !strings.Contains(field, ": ") {
		return field, ""
	}
	if key, value, ok := strings.Cut(text, ": "); ok {
		return key, strings.TrimSpace(value)
	}
	return "", text
}

// valueOf returns the words that stand for a value in a message: "the value of", with the name of
// the field. It omits a name that is not a known field: in a file that does not parse, this word
// may be part of a password.
func valueOf(key string) string {
	if knownFields()[key] {
		return "the value of " + key
	}
	return "the value"
}

// fieldWithoutSpace returns the field in a text like username:Administrator, or "" if the text
// does not begin with a known field, a colon and no space.
func fieldWithoutSpace(text string) string {
	field, value, ok := strings.Cut(text, ":")
	if !ok || value == "" || value[0] == ' ' || !knownFields()[field] {
		return ""
	}
	return field
}

// above returns the number of the last earlier line that is neither blank nor a comment,
// or 0 if there is none.
func above(c chunk, number int) int {
	for n := number - 1; n >= c.first; n-- {
		if text := strings.TrimSpace(c.line(n)); text != "" && text[0] != '#' {
			return n
		}
	}
	return 0
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func withoutComment(text string) string {
	if strings.HasPrefix(text, "#") {
		return ""
	}
	text, _, _ = strings.Cut(text, " #")
	return strings.TrimSpace(text)
}

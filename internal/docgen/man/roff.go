package main

import (
	"bytes"
	"fmt"
	"strings"
)

// roff writes requests and text of the man macros.
type roff struct{ bytes.Buffer }

// special are the characters that roff would read, or print, as something else.
var special = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// section begins a section.
func (r *roff) section(title string) { fmt.Fprintf(r, ".SH %s\n", title) }

// text writes the plain text of a help: paragraphs, lists with dashes, and indented lines as they are.
func (r *roff) text(text string) {
	for i, block := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			r.WriteString(".PP\n")
		}
		r.block(strings.Split(strings.Trim(block, "\n"), "\n"))
	}
}

// block writes lines that no empty line separates.
func (r *roff) block(lines []string) {
	for len(lines) > 0 {
		count := 1
		switch first := lines[0]; {
		case strings.HasPrefix(first, "- "):
			for count < len(lines) && strings.HasPrefix(lines[count], "  ") {
				count++
			}
			r.WriteString(".IP \\(bu 2\n")
			r.line(first[len("- "):])
			for _, line := range lines[1:count] {
				r.line(strings.TrimSpace(line))
			}
		case indented(first):
			for count < len(lines) && indented(lines[count]) {
				count++
			}
			r.literal(lines[:count])
		default:
			r.line(first)
		}
		lines = lines[count:]
	}
}

func indented(line string) bool { return strings.HasPrefix(line, "  ") }

// literal writes lines whose breaks and spaces are kept.
func (r *roff) literal(lines []string) {
	r.WriteString(".RS 2\n.EX\n")
	for _, line := range lines {
		r.line(strings.TrimPrefix(line, "  "))
	}
	r.WriteString(".EE\n.RE\n")
}

// line writes a line of text. Words in backquotes, which are commands, become bold.
func (r *roff) line(text string) {
	parts := strings.Split(text, "`")
	if len(parts)%2 == 0 { // a backquote without its pair is itself
		parts = []string{text}
	}
	var b strings.Builder
	for i, part := range parts {
		if part = special.Replace(part); i%2 == 1 {
			part = `\fB` + part + `\fR`
		}
		b.WriteString(part)
	}
	line := b.String()
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	r.WriteString(line + "\n")
}

// item begins an item of a list of terms; its text follows.
func (r *roff) item(term string) { fmt.Fprintf(r, ".TP\n%s\n", term) }

func bold(text string) string   { return `\fB` + special.Replace(text) + `\fR` }
func italic(text string) string { return `\fI` + special.Replace(text) + `\fR` }

package ui

import (
	"bytes"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/order"
)

// Page writes a command's result for people. Its text passes a PrintableWriter. Only the
// page decides whether there are colours.
type Page struct {
	// Wide reports whether the result has all its columns (-o wide).
	Wide bool
	// Sort is the order of the rows of all tables (--sort-by).
	Sort order.Choice
	// Rewrite gets the text of each call of Write, and returns the text that the page prints
	// instead. nil: the page prints the text unchanged.
	Rewrite func(text string) string

	shown *PrintableWriter
}

// NewPage returns a page that writes to w, with or without colours.
func NewPage(w io.Writer, colour bool) *Page {
	return &Page{shown: NewPrintableWriter(&colourist{w: Raw(w), colour: colour})}
}

// IsWide reports whether w is a page whose tables have all their columns.
func IsWide(w io.Writer) bool {
	page, ok := w.(*Page)
	return ok && page.Wide
}

// Write writes text.
func (p *Page) Write(text []byte) (int, error) {
	if p.Rewrite == nil {
		return p.shown.Write(text)
	}
	if _, err := io.WriteString(p.shown, p.Rewrite(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush writes the text that was held back.
func (p *Page) Flush() error { return p.shown.Flush() }

// colourist replaces colour marks by colours.
type colourist struct {
	w      io.Writer
	colour bool
}

func (c *colourist) Write(text []byte) (int, error) {
	if !bytes.Contains(text, []byte(markEnd)) {
		return c.w.Write(text)
	}
	replacer := noColours()
	if c.colour {
		replacer = colours()
	}
	if _, err := replacer.WriteString(c.w, string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Colours are marked with Unicode noncharacters, which a Page replaces by colours. So
// text that merely looks like a colour sequence stays text. A page without colours
// removes the marks.
const (
	markBad  = "\ufdd0"
	markWarn = "\ufdd1"
	markGood = "\ufdd2"
	markEnd  = "\ufdd3"
)

// Bad marks a failure.
func Bad(text string) string { return marked(markBad, text) }

// Warn marks text that deserves attention.
func Warn(text string) string { return marked(markWarn, text) }

// Good marks a success that readers look for.
func Good(text string) string { return marked(markGood, text) }

func marked(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text + markEnd
}

func colours() *strings.Replacer {
	return strings.NewReplacer(markBad, "\x1b[31m", markWarn, "\x1b[33m", markGood, "\x1b[32m", markEnd, "\x1b[0m")
}

func noColours() *strings.Replacer {
	return strings.NewReplacer(markBad, "", markWarn, "", markGood, "", markEnd, "")
}

// unmarked returns text without colour marks.
func unmarked(text string) string {
	if !strings.Contains(text, markEnd) {
		return text
	}
	return noColours().Replace(text)
}

package livetable

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Screen is a part of a terminal that is redrawn. It writes its own control sequences, and escapes
// the control sequences in the text.
type Screen struct {
	out   io.Writer
	size  func() (width, height int)
	drawn int // the number of lines of the previous drawing
}

// NewScreen returns a screen on out; nothing is drawn yet.
func NewScreen(out io.Writer) *Screen {
	return &Screen{out: ui.Raw(out), size: func() (int, int) { return terminalSize(out) }}
}

func terminalSize(out io.Writer) (width, height int) {
	if terminal, ok := out.(*ui.Terminal); ok {
		if width, height, err := term.GetSize(int(terminal.File().Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// Leave keeps the current drawing on the terminal: the next drawing starts below.
func (s *Screen) Leave() { s.drawn = 0 }

// Draw replaces the previous drawing by text with a dim footer below it. If there is no room for
// some lines, Draw omits these lines and prints their number.
func (s *Screen) Draw(text string, footer ...string) error {
	width, height := s.size()
	if len(footer) > height-4 {
		footer = footer[:max(0, min(1, height-4))]
	}
	room := height - len(footer)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if left := len(lines) - (room - 1); left > 0 && room > 2 {
		lines = append(lines[:room-2], fmt.Sprintf("… and %d more", left+1))
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[K" + fitting(line, width) + "\n")
	}
	for _, line := range footer {
		b.WriteString("\r\x1b[K\x1b[2m" + fitting(line, width) + "\x1b[0m\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines) + len(footer)
	_, err := io.WriteString(s.out, b.String())
	return err
}

// fitting returns as much of the line as fits into width columns.
func fitting(line string, width int) string {
	line = ui.Printable(line)
	if runes := []rune(line); len(runes) > width {
		line = string(runes[:width])
	}
	return line
}

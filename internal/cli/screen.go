package cli

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/ui"
)

// screen is a part of a terminal that is written again and again. The control
// sequences are its own: those in the text are escaped.
type screen struct {
	out   io.Writer
	size  func() (width, height int)
	drawn int // lines
}

func newScreen(out io.Writer) *screen {
	return &screen{out: ui.Raw(out), size: func() (int, int) { return terminalSize(out) }}
}

func terminalSize(out io.Writer) (width, height int) {
	if terminal, ok := out.(*ui.Terminal); ok {
		if width, height, err := term.GetSize(int(terminal.File().Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// leave lets what was drawn stand: the next drawing is below it.
func (s *screen) leave() { s.drawn = 0 }

// draw writes over what was drawn before. What has no room is left out, and that
// is said.
func (s *screen) draw(text string) error {
	width, height := s.size()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if left := len(lines) - (height - 1); left > 0 && height > 2 {
		lines = append(lines[:height-2], fmt.Sprintf("… and %d more", left+1))
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, line := range lines {
		line = ui.Printable(line)
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width])
		}
		b.WriteString("\r\x1b[K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	_, err := io.WriteString(s.out, b.String())
	return err
}

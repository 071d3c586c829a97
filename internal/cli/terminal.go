package cli

import (
	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/ui"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool { return ui.IsTerminal(stream) }

// canDraw reports whether swdt can redraw its output on a stream: a terminal that can
// move its cursor and that has a width.
func (a *app) canDraw(stream any) bool {
	terminal, ok := stream.(*ui.Terminal)
	if !ok || a.env.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(terminal.File().Fd()))
	return err == nil && width > 0
}

// hasColour reports whether a stream supports colours and the user wants them
// (https://no-color.org).
func (a *app) hasColour(stream any) bool {
	return isTerminal(stream) && a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb"
}

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/pager"
)

// paged writes a page to stdout. If that is a terminal and the page is longer than the screen, the user's pager shows it.
func (a *app) paged(open func(io.Writer) *ui.Page, text func(*ui.Page) error) error {
	screen, command := a.pager()
	if command == "" {
		page := open(a.streams.Out)
		return errors.Join(text(page), page.Flush())
	}
	var shown bytes.Buffer
	page := open(&shown)
	err := errors.Join(text(page), page.Flush())
	columns, rows, unknown := term.GetSize(int(screen.Fd()))
	if unknown == nil && columns > 0 && !pager.Fits(shown.String(), columns, rows) &&
		pager.Show(words(command), shown.String(), screen, ui.Raw(a.streams.Err)) == nil {
		return err
	}
	_, wrote := screen.Write(shown.Bytes()) // the page has made the text printable
	return errors.Join(err, wrote)
}

// pager returns the terminal of stdout and the command line of the pager for it, or "" for none. A command that changes
// something gets none, since its end must not wait for a key.
func (a *app) pager() (screen *os.File, command string) {
	terminal, ok := a.streams.Out.(*ui.Terminal)
	if !ok || !a.canDraw(terminal) {
		return nil, ""
	}
	if cmd := a.invoked; cmd != nil && cmd.Annotations[dryRunnable] != "" && !a.global.dryRun {
		return nil, ""
	}
	return terminal.File(), pager.Command(a.env.LookupEnv)
}

// words splits the command line of a pager. The shell does it, as it does for git, so PAGER='less -S' and
// PAGER='col -b | less' mean the same everywhere. Windows has no such shell: its own rules split the line there.
func words(command string) []string {
	if runtime.GOOS != "windows" {
		return []string{"sh", "-c", command}
	}
	return commandline.Split(command)
}

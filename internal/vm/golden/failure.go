package golden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/install"
)

// BuildError reports an installation that failed. It names the files with the last screen and with
// the end of the serial port's text.
type BuildError struct {
	*install.Failure
	Screen string // path of a PNG; "" if no screen was seen
	Serial string // path of a file with the end of the serial port's text; "" if nothing was sent
	Last   string // the last lines of the serial port's text, printable
}

func (e *BuildError) Error() string {
	text := e.Failure.Error()
	if e.Last != "" {
		text += fmt.Sprintf("; the serial port's last lines are %q, more is in %s", e.Last, e.Serial)
	}
	if e.Screen != "" {
		text += "; the screen is saved as " + e.Screen
	}
	if remedy := e.Remedy(); remedy != "" {
		text += "; " + remedy
	}
	return text
}

func (e *BuildError) Unwrap() error { return e.Failure }

// lastLines is how many lines of the serial port an error repeats.
const lastLines = 3

// failed saves files about an installation that failed, and returns a *BuildError. The files have
// the last screen and the end of the serial port's text. The VM must still exist. If the
// installation was interrupted, or if err is no *install.Failure, failed saves nothing and returns
// err.
func (b *build) failed(ctx context.Context, g *guest, err error) error {
	var failure *install.Failure
	if !errors.As(err, &failure) || failure.Cause == install.Interrupted {
		return err
	}
	result := &BuildError{Failure: failure, Last: lastOf(g.tail)}
	folder := b.images.failedFolder(b.key)
	if problem := errors.Join(os.RemoveAll(folder), privateFolder(folder)); problem != nil {
		return errors.Join(result, problem)
	}
	keep := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if len(content) == 0 || ctx.Err() != nil {
			return ""
		}
		if problem := localfile.Replace(path, content); problem != nil {
			b.reporter.Warn("keep %s of the failed build: %v", name, problem)
			return ""
		}
		return path
	}
	result.Screen, result.Serial = keep("screen.png", g.screen), keep("serial.log", g.tail)
	return result
}

// lastOf returns the last lines of a guest's text as one printable line, separated by |.
func lastOf(text []byte) string {
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(ui.Printable(strings.TrimSpace(line))); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-lastLines):], " | ")
}

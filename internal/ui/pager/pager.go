// Package pager shows text that is longer than the screen in the program that the user has chosen for it.
package pager

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Variable is the environment variable that names the pager of swdt alone.
const Variable = "SWDT_PAGER"

// Command returns the command line of the pager that the user wants: $SWDT_PAGER, else $PAGER. It returns "" for none,
// which is also what cat and an empty value mean, as in git. Without the variables there is no pager, as in gh: a
// program that only sometimes waits for a key surprises users who did not ask for it.
func Command(lookup func(name string) (string, bool)) string {
	for _, name := range []string{Variable, "PAGER"} {
		if value, isSet := lookup(name); isSet {
			if value = strings.TrimSpace(value); value == "cat" {
				return ""
			}
			return value
		}
	}
	return ""
}

// colourSequence matches what makes text coloured, which takes no columns.
var colourSequence = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Fits reports whether a screen shows the whole text above the prompt of the shell.
func Fits(text string, columns, rows int) bool {
	used := 0
	for line := range strings.Lines(text) {
		width := runewidth.StringWidth(strings.TrimRight(colourSequence.ReplaceAllString(line, ""), "\n"))
		used += max(1, (width+columns-1)/columns)
	}
	return used < rows
}

// ErrNotRun is the error of a pager that could not be run.
var ErrNotRun = errors.New("the pager cannot be run")

// The exit codes of a shell that cannot run a program or does not find it (POSIX, Shell Command Language, 2.8.2).
const (
	notExecutable = 126
	notFound      = 127
)

// Show shows text on a terminal until the user closes the pager, which is no error even if the user has not seen all of
// it. It returns ErrNotRun if nothing was shown. Meanwhile Ctrl-C reaches the pager alone, as it does under git.
func Show(command []string, text string, terminal *os.File, stderr io.Writer) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), terminal, stderr
	cmd.Env = os.Environ()
	if _, isSet := os.LookupEnv("LESS"); !isSet {
		// As git has it: quit if the text is shorter than the screen, show colours, leave the text on the screen.
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	signal.Ignore(os.Interrupt)
	defer signal.Reset(os.Interrupt)
	var ended *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &ended) && (ended.ExitCode() == notExecutable || ended.ExitCode() == notFound) {
		return fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	return nil
}

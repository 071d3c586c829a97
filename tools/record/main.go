// Command record runs a session in a terminal, and records it as the terminal shows it.
//
//	record -session FILE -cast FILE.cast -page FILE.md
//
// The session is a text. Each line that begins with "$ " is a command, which bash runs; each line
// that begins with "# " is a title for the commands below it, and one that begins with "~ " a command that is not
// shown. "! N" demands that the command above it
// exits with N instead of 0. The recording is an asciicast of version 2, with a marker for each
// command; the page is the same as Markdown, whose commands TestGuides of internal/cli runs again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	session := flag.String("session", "", "the `file` of the session")
	cast := flag.String("cast", "", "the asciicast, a `file` to write")
	page := flag.String("page", "", "the Markdown page, a `file` whose part after the line \""+pageMark+"\" is written")
	home := flag.String("home", "", "the `folder` that is the commands' home")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *session, *cast, *page, *home)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sessionFile, castFile, pageFile, home string) error {
	text, err := os.ReadFile(sessionFile)
	if err != nil {
		return err
	}
	session, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", sessionFile, err)
	}
	outputs, err := perform(ctx, session, home)
	if err != nil {
		return err
	}
	if err := writePage(pageFile, session, outputs, home); err != nil {
		return err
	}
	return os.WriteFile(castFile, cast(session, outputs), 0o644)
}

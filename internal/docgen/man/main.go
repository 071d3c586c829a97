// Command man writes a manual page for each command of swdt, from the command's help: swdt.1 with the
// flags of every command and the exit codes, and swdt-COMMAND.1.
//
//	man -version V -date YYYY-MM-DD FOLDER
//
// The help is plain text for a terminal, not Markdown, so cobra's own generator would lose its
// indentation. page.go arranges a page, roff.go writes text in the language of man.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

func main() {
	version := flag.String("version", "", "the version that the pages name")
	date := flag.String("date", "", "the date that the pages name")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: man [-version V] [-date YYYY-MM-DD] FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), edition{*version, *date}, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, e edition, folder string) error {
	all, err := pages(ctx, e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range all {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// edition is printed at the foot of each page.
type edition struct{ version, date string }

// pages returns all pages by their file names.
func pages(ctx context.Context, e edition) (map[string][]byte, error) {
	codes, err := exitCodes(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		p := page{cmd: cmd, edition: e, exitCodes: codes}
		all[pageName(cmd)+".1"] = p.write()
		for _, child := range shown(cmd) {
			add(child)
		}
	}
	add(cli.Tree())
	return all, nil
}

// exitCodes returns what `swdt help exit-codes` prints.
func exitCodes(ctx context.Context) (string, error) {
	var out, story bytes.Buffer
	streams := ui.Streams{In: strings.NewReader(""), Out: &out, Err: &story}
	code := cli.Run(ctx, streams, []string{"help", "exit-codes"}, cli.Environment{Program: "swdt"})
	if code != 0 || out.Len() == 0 {
		return "", fmt.Errorf("print the exit codes: exit code %d: %s", code, story.String())
	}
	return out.String(), nil
}

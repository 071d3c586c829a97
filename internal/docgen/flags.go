package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/cli"
)

const flagsIntroduction = "A flag means the same in every command that has it; a test walks all commands. The short form `-f` " +
	"has two\nmeanings, as in kubectl: `logs` and `events` follow, the other commands read a file.\n\n" +
	"Under kubectl, `-n` is the namespace, and `--node` has no short form.\n\n" +
	"| flag | meaning | commands |\n|---|---|---|\n"

const formerIntroduction = "\n## Former spellings\n\nThese still work, with a warning. The next release refuses them.\n\n" +
	"| command | was | is |\n|---|---|---|\n"

// flagPage returns the page with the meaning of each flag.
func flagPage() []byte {
	var page bytes.Buffer
	page.WriteString("# Flags\n\n" + generated + flagsIntroduction)
	for _, f := range cli.Flags() {
		name := "--" + f.Name
		if f.Short != "" {
			name = "-" + f.Short + ", " + name
		}
		commands := "all"
		if f.Commands != nil {
			commands = strings.Join(f.Commands, ", ")
		}
		if f.Name == cli.FilenameFlag {
			commands = "those with -c, but logs and events; upgrade check reads manifests"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", strings.TrimSpace(name+" "+f.Value), cell(f.Meaning), commands)
	}
	page.WriteString(formerIntroduction)
	for _, f := range cli.FormerFlags() {
		fmt.Fprintf(&page, "| `%s` | `%s` | `--%s` |\n", f.Command, f.Former, f.Name)
	}
	return page.Bytes()
}

// cell returns a text as the cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}

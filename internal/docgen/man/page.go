package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/swdt-dev/swdt/internal/cli"
)

// page is the manual page of a command.
type page struct {
	roff
	cmd       *cobra.Command
	edition   edition
	exitCodes string
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// shown returns the commands below cmd that help lists, but help itself.
func shown(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(cli.Below(cmd), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.Name() == "help"
	})
}

func (p *page) write() []byte {
	name := pageName(p.cmd)
	fmt.Fprintf(p, ".TH %s 1 %q %q %q\n", strings.ToUpper(name), p.edition.date,
		strings.TrimSpace("swdt "+p.edition.version), "swdt manual")
	// No hyphens are added to words, and the right margin stays ragged, so that commands can be copied.
	p.WriteString(".nh\n.ad l\n")
	p.section("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", special.Replace(name), special.Replace(lowerFirst(p.cmd.Short)))
	p.synopsis()
	p.section("DESCRIPTION")
	p.text(cmp.Or(p.cmd.Long, p.cmd.Short+"."))
	p.commands()
	p.flags("OPTIONS", p.cmd.LocalNonPersistentFlags())
	if !p.cmd.HasParent() {
		p.flags("OPTIONS OF EVERY COMMAND", p.cmd.PersistentFlags())
	}
	if p.cmd.HasExample() {
		p.section("EXAMPLES")
		p.literal(strings.Split(p.cmd.Example, "\n"))
	}
	p.section("EXIT STATUS")
	if p.cmd.HasParent() {
		p.WriteString("\\fBswdt\\fR(1) lists the exit codes, and the options that every command has.\n")
	} else {
		p.text(p.exitCodes)
	}
	p.seeAlso()
	return p.Bytes()
}

// lowerFirst makes a sentence continue the line that begins with the command's name, unless its first word
// is an abbreviation.
func lowerFirst(sentence string) string {
	if len(sentence) < 2 || sentence[1] >= 'A' && sentence[1] <= 'Z' {
		return sentence
	}
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

func (p *page) synopsis() {
	p.section("SYNOPSIS")
	path, rest := p.cmd.CommandPath(), strings.TrimPrefix(p.cmd.UseLine(), p.cmd.CommandPath())
	if p.cmd.HasAvailableSubCommands() {
		rest = " COMMAND [flags]"
	}
	fmt.Fprintf(p, "%s%s\n", bold(path), special.Replace(rest))
	for _, alias := range p.cmd.Aliases {
		fmt.Fprintf(p, ".br\n%s%s\n", bold(strings.TrimSuffix(path, p.cmd.Name())+alias), special.Replace(rest))
	}
}

func (p *page) commands() {
	children := shown(p.cmd)
	if len(children) == 0 {
		return
	}
	p.section("COMMANDS")
	groups := p.cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{}}
	}
	for _, group := range groups {
		if group.Title != "" {
			fmt.Fprintf(p, ".SS %s\n", special.Replace(strings.TrimSuffix(group.Title, ":")))
		}
		for _, child := range children {
			if child.GroupID == group.ID {
				p.item(bold(pageName(child)) + "(1)")
				p.line(child.Short + ".")
			}
		}
	}
}

func (p *page) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.section(title)
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		term, value, text := described(f)
		p.item(strings.TrimSpace(bold(term) + " " + italic(value)))
		for line := range strings.SplitSeq(text, "\n") {
			p.line(strings.TrimSpace(line))
		}
	})
}

// described returns a flag as help prints it: its names, the word for its value, and its text with the default.
func described(f *pflag.Flag) (names, value, text string) {
	alone := pflag.NewFlagSet("", pflag.ContinueOnError)
	alone.AddFlag(f)
	left, text, _ := strings.Cut(strings.TrimSpace(alone.FlagUsages()), "   ")
	names = "--" + f.Name
	if f.Shorthand != "" {
		names = "-" + f.Shorthand + ", " + names
	}
	return names, strings.TrimSpace(strings.TrimPrefix(left, names)), strings.TrimSpace(text)
}

func (p *page) seeAlso() {
	var names []string
	if p.cmd.HasParent() {
		names = append(names, pageName(p.cmd.Parent()))
		for _, sibling := range shown(p.cmd.Parent()) {
			if sibling != p.cmd && p.cmd.Parent().HasParent() {
				names = append(names, pageName(sibling))
			}
		}
	} else {
		names = append(names, "kubectl", "ssh")
	}
	p.section("SEE ALSO")
	for i, name := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		fmt.Fprintf(p, ".BR %s (1)%s\n", special.Replace(name), end)
	}
}

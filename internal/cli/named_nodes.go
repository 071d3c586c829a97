package cli

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/ssh"
)

// --node, which is also --to, names a node in the same way for all commands: a node of a file that -c or SWDT_CONFIG
// names, else of a file that swdt found and that is trusted, else, with --via kubernetes, of the cluster, else a machine
// by its SSH name.

// onlyOfFiles lists the commands whose --node names documents of a file, or VMs, alone.
func onlyOfFiles() []string {
	return []string{"up", "down", "vm", "image bake", "cluster", "network", "config validate"}
}

// takesSSHNames reports whether --node of this command can be the SSH name of a machine.
func (a *app) takesSSHNames() bool {
	path, _ := a.invokedNeedsSSH()
	return !isOf(path, onlyOfFiles())
}

// isOf reports whether a command is one of these commands, or below one.
func isOf(path string, commands []string) bool {
	return slices.ContainsFunc(commands, func(command string) bool {
		return path == command || strings.HasPrefix(path, command+" ")
	})
}

// choosesByName reports whether --node alone chooses the nodes, by names that no file need have.
func (a *app) choosesByName() bool {
	return len(a.global.nodes) > 0 && a.global.selector == "" && a.takesSSHNames()
}

// namedDocuments returns the nodes that --node names.
func (a *app) namedDocuments() ([]config.Document, error) {
	documents, err := a.namedInFiles()
	if err != nil {
		return nil, err
	}
	named := map[string]config.Document{}
	for _, d := range documents {
		named[d.Node.Metadata.Name] = d
	}
	var chosen []config.Document
	var unknown []string
	for _, name := range unique(a.global.nodes) {
		d, known := named[name]
		switch {
		case known:
			if err := a.checkOneMeaning(name, d); err != nil {
				return nil, err
			}
		case a.isSSHName(name, len(documents) > 0):
			if d, err = config.OfSSH(name); err != nil {
				return nil, err
			}
			if slices.ContainsFunc(chosen, func(other config.Document) bool {
				return other.Node.Metadata.Name == d.Node.Metadata.Name
			}) {
				return nil, usagef("%s %s: another node has the name %s, too: give one of them a name in a node file", a.nodesFlag(),
					name, d.Node.Metadata.Name)
			}
			a.typed[d.Node.Metadata.Name] = name
		default:
			unknown = append(unknown, name)
			continue
		}
		chosen = append(chosen, d)
	}
	if len(unknown) > 0 {
		_, err := config.Select(documents, unknown, "")
		return nil, withSSHRemedy(err)
	}
	return a.applyVia(chosen), nil
}

// namedInFiles returns the nodes of the file that counts. Without one, and if the file that swdt found is not
// trusted, it returns none.
func (a *app) namedInFiles() ([]config.Document, error) {
	if !a.namesNodeFiles() {
		source, err := config.DefaultSource()
		if source == "" || a.ignores(source, err) {
			return nil, nil
		}
	}
	sources, err := a.sources()
	if err != nil {
		return nil, err
	}
	documents, err := config.Load(sources, a.streams.In)
	if err != nil {
		return nil, orEnded(err, sources)
	}
	a.loaded = len(documents)
	return documents, nil
}

// ignores reports whether a node file that swdt found does not count, and says so. foreign is the reason if another
// account can change it.
func (a *app) ignores(found string, foreign error) bool {
	if foreign == nil && (!config.IsHere(found) || a.trusts(found)) {
		return false
	}
	if a.completing() {
		return true
	}
	why := "is not trusted: `swdt config trust` trusts it"
	if foreign != nil {
		why = "can be changed by another account"
	}
	story := a.newStory()
	story.Node("").Info("%s", a.remedies("", found+" is ignored, since it was found, not named, and "+why))
	story.End()
	return true
}

// isSSHName reports whether a name that no file has is one of SSH. Beside the nodes of a file, a bare word is one only if
// ~/.ssh/config has it: else a misspelt name would lead to another machine.
func (a *app) isSSHName(name string, beside bool) bool {
	if !a.takesSSHNames() || a.global.via.text != "" {
		return false
	}
	if strings.Contains(name, "@") {
		return true
	}
	if a.namesNodeFiles() {
		return false
	}
	host, _, err := net.SplitHostPort(name)
	_, listed, _ := ssh.Address(name, a.sshOptions())
	return !beside || listed || err == nil && host != "" || net.ParseIP(name) != nil
}

// checkOneMeaning returns an error if a name is a node of a file that swdt found, and also a Host of ~/.ssh/config that
// leads to another machine.
func (a *app) checkOneMeaning(name string, d config.Document) error {
	if a.namesNodeFiles() || a.global.via.text != "" || !a.takesSSHNames() || d.Node.Spec.Credentials.Hostname == "" {
		return nil
	}
	other, listed, err := ssh.Address(name, a.sshOptions())
	if err != nil || !listed {
		return nil
	}
	own, _, err := ssh.Address(d.Node.Spec.Credentials.Hostname, a.sshOptions())
	if err != nil || own == other {
		return nil
	}
	return usagef("%s %s has two meanings: a node of %s (%s), and a Host of the SSH config (%s); name the file with -c %[3]s, "+
		"or the machine with USER@%[2]s", a.nodesFlag(), name, d.File, own, other)
}

func (a *app) sshOptions() ssh.Options { return ssh.Options{Config: a.global.sshConfig} }

// withSSHRemedy adds to an error about an unknown node how to name a machine that no file has.
func withSSHRemedy(err error) error {
	var unknown *config.Error
	if errors.As(err, &unknown) {
		for i, p := range unknown.Problems {
			unknown.Problems[i].Remedy = fmt.Sprintf("%s; USER@HOST names a machine that no file has", p.Remedy)
		}
	}
	return err
}

// unique returns the names once each. A completion parses the flags twice.
func unique(names []string) (once []string) {
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

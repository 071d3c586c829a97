package cli

import (
	"strings"
	"testing"
)

// Each foreign word leads to a command that exists, with flags that it has, and is no command itself.
func TestForeignWordsLeadToCommands(t *testing.T) {
	for word, leads := range foreignCommands() {
		root := (&app{env: Environment{}.complete()}).rootCommand()
		if found, _, err := root.Find([]string{word}); err == nil && found != root {
			t.Errorf("%s is a command itself", word)
		}
		words := strings.Fields(leads)
		found, rest, err := root.Find(words)
		if err != nil || found == root || !found.IsAvailableCommand() {
			t.Errorf("%s leads to %q, which is no command", word, leads)
			continue
		}
		if err := found.ParseFlags(rest); err != nil || found.Flags().NArg() > 0 {
			t.Errorf("%s leads to %q, whose arguments are wrong: %v", word, leads, err)
		}
	}
	root := (&app{env: Environment{}.complete()}).rootCommand()
	for words, want := range map[string]string{
		"get pods": "cri pods", "describe node/win-1": "status", "get frobs": "status", "list services": "services",
		"get events": "events", "get service": "service", "get port-forward": "port-forward", "k8s": "push",
		"Get-Service kubelet": "services", "frob": "",
	} {
		if got := meant(strings.Fields(words), commandNames(root)); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

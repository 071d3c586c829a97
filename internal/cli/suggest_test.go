package cli

import (
	"strings"
	"testing"
)

// Each foreign word leads to a command that exists, with flags that it has, and is no command itself.
func TestForeignWordsLeadToCommands(t *testing.T) {
	leadsOf := foreignCommands()
	for _, phrase := range foreignPhrases() {
		leadsOf[phrase.words] = phrase.command
		if phrase.reason == "" {
			t.Errorf("%s has no reason", phrase.words)
		}
	}
	for words, leads := range leadsOf {
		word, _, _ := strings.Cut(words, " ")
		root := (&app{env: Environment{}.complete()}).rootCommand()
		if found, _, err := root.Find([]string{word}); err == nil && found != root {
			t.Errorf("%s is a command itself", word)
		}
		words := strings.Fields(leads)
		found, rest, err := root.Find(words)
		if err != nil || found == root || !found.IsAvailableCommand() {
			t.Errorf("%s leads to %q, which is no command", words, leads)
			continue
		}
		if err := found.ParseFlags(rest); err != nil {
			t.Errorf("%s leads to %q, whose flags are wrong: %v", words, leads, err)
		} else if args := found.Flags().Args(); len(args) > 0 && found.ValidateArgs(args) != nil {
			t.Errorf("%s leads to %q, whose arguments are wrong: %v", words, leads, found.ValidateArgs(args))
		}
	}
	root := (&app{env: Environment{}.complete()}).rootCommand()
	for words, want := range map[string]string{
		"get pods": "cri pods", "describe node/win-1": "status", "get frobs": "status", "list services": "services",
		"get events": "events", "get service": "service", "get port-forward": "port-forward", "k8s": "push",
		"Get-Service kubelet": "services", "frob": "",
		"rollout undo kubelet": "rollback", "rollout frob": "", "ssh -L 1:h:2 win-1": "forward", "ssh win-1": "shell",
		"describe pod/web-0": "doctor", "systemctl cat": "services", "prune -a": pruneImages,
	} {
		if got := meant(strings.Fields(words), commandNames(root)); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

package cli

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
)

// foreignCommands returns the commands of swdt that do what a word means in kubectl, crictl, Docker, SSH, Unix or
// Windows, if no command of swdt has that name. The commands are written without the program's name.
func foreignCommands() map[string]string {
	return map[string]string{
		"pods": "cri pods", "pod": "cri pods", "po": "cri pods", "containers": "cri containers", "images": "cri images",
		"crictl": "cri", "docker": "cri", "nerdctl": "cri", "ctr": "cri",
		"get": "status", "nodes": "status", "node": "status", "describe": "status", "info": "status", "state": "status", "list": "status", "ls": "status",
		"ssh": "shell", "bash": "shell", "cmd": "shell", "login": "shell", "console": "shell",
		"dlv": "attach", "delve": "attach", "gdb": "attach",
		"scp": "cp", "sftp": "cp", "copy": "cp", "download": "cp", "upload": "cp", "rsync": "cp",
		"tcpdump": "capture", "pktmon": "capture", "wireshark": "capture", "netsh": "capture",
		"tail": "logs", "log": "logs", "journalctl": "logs", "journal": "logs", "less": "logs",
		"check": "doctor", "health": "doctor", "healthz": "doctor", "df": "doctor --rule disk-space", "prune": pruneImages, "rmi": pruneImages,
		"disk": "doctor --rule disk-space", "get-service": "services", "sc": "services", "systemctl": "services",
		"tunnel": "forward", "mstsc": "rdp", "run": "exec", "taskmgr": "top", "htop": "top", "free": "top", "tasklist": "ps", "processes": "ps", "networks": "hns networks", "endpoints": "hns endpoints",
		"policies": "hns policies", "support": "diag", "bundle": "diag", "must-gather": "diag", "collect": "diag",
		"undo": "rollback", "revert": "rollback", "restore": "rollback", "uninstall": "reset",
		"drain": "push --drain", "deploy": "push", "apply": "push", "install": "push", "k8s": "push", "update": "push", "replace": "push",
		"diff": "push --dry-run", "build": "push --build", "watch": "push --watch",
		"init": "config init", "validate": "config validate", "kind": "cluster", "test": "e2e",
	}
}

// foreignPhrase is the beginning of a command of another program which means another command of swdt than its first word
// does alone.
type foreignPhrase struct {
	words, command string
	reason         string // why this command, for the reader of the table
}

func foreignPhrases() []foreignPhrase {
	return []foreignPhrase{
		{"systemctl restart", "restart", "services is for how Windows starts them"},
		{"systemctl start", "restart", "restart starts a service that has stopped"},
		{"systemctl status", "status", "it has the state of the node's services"},
		{"rollout restart", "restart", "kubectl's word for new processes of the same build"},
		{"rollout undo", "rollback", "--to-push N is kubectl's --to-revision=N"},
		{"rollout history", "history", "pushes are the revisions of a node"},
		{"rollout status", "status", "a push waits by itself, so only the state is left to see"},
		{"ssh -L", "forward", "a shell forwards no port"},
		{"describe pod", "doctor", "the pod's own state is in kubectl's output; the node's part is in the findings"},
		{"describe pods", "doctor", "as describe pod"},
		{"describe po", "doctor", "as describe pod"},
		{"system df", "doctor --rule disk-space", "as df"},
		{"system prune", pruneImages, "unused images take the space; crictl removes them"},
		{"docker ps", "cri containers", "cri alone only lists its subcommands"},
		{"docker logs", "logs", "containers have their logs in logs"},
		{"docker exec", "hcs exec", "it runs a program in a container"},
	}
}

// pruneImages removes the images that no container uses.
const pruneImages = "cri proxy --exec -- crictl rmi --prune"

// meant returns the command that a user means with words that are no command of root, or "". kubectl's verbs get,
// describe and list are decided by the noun that follows, which may be one of the commands with these names.
func meant(words, names []string) string {
	foreign := foreignCommands()
	first := strings.ToLower(words[0])
	if len(words) > 1 && !slices.Contains(names, first) {
		noun, _, _ := strings.Cut(words[1], "/")
		for _, phrase := range foreignPhrases() {
			if phrase.words == first+" "+noun {
				return phrase.command
			}
		}
	}
	if len(words) > 1 && slices.Contains([]string{"get", "describe", "list", "show"}, first) {
		noun, _, _ := strings.Cut(strings.ToLower(words[1]), "/")
		if slices.Contains(names, noun) {
			return noun
		}
		if command := foreign[noun]; command != "" {
			return command
		}
	}
	return foreign[first]
}

// closest returns the candidate that the user most probably meant, or "". If several are
// equally close, it returns the longest, since omitting a letter is the most common slip.
func closest(typed string, candidates []string) string {
	best, distance := "", 2 // one slip; a longer word may have several, such as two swapped letters
	if len(typed) > 3 {
		distance = max(3, len(typed)/3+1)
	}
	for _, candidate := range candidates {
		d := config.EditDistance(strings.ToLower(typed), candidate)
		if d < distance || d == distance && best != "" && len(candidate) > len(best) {
			best, distance = candidate, d
		}
	}
	if best == "" && len(typed) >= 3 {
		for _, candidate := range candidates {
			if strings.HasPrefix(candidate, typed) {
				return candidate
			}
		}
	}
	return best
}

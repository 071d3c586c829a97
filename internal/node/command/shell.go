package command

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// ForShell restores quotes in a command line for cmd: the user's shell has removed the quotes
// around arguments, and cmd splits the command line at every space again. An argument with cmd's
// own syntax stays as it is. The argument after /c or /k also stays as it is, because it may be a
// whole command line. The arguments of other programs are returned unchanged.
func ForShell(args []string) []string {
	program := strings.ToLower(args[0][strings.LastIndexAny(args[0], `\/`)+1:])
	first := slices.IndexFunc(args, func(arg string) bool {
		return strings.EqualFold(arg, "/c") || strings.EqualFold(arg, "/k")
	})
	if program != "cmd" && program != "cmd.exe" || first < 0 {
		return args
	}
	quoted := slices.Clone(args)
	for i := first + 2; i < len(args); i++ {
		if strings.ContainsAny(args[i], " \t") && !strings.ContainsAny(args[i], `"&|<>^`) {
			quoted[i] = `"` + args[i] + `"`
		}
	}
	return quoted
}

// NotFoundRemedy returns advice on how to run a command whose name is not a program on
// the node.
func NotFoundRemedy(args []string) string {
	name := strings.ToLower(args[0])
	switch {
	case slices.Contains(cmdBuiltins(), name):
		return args[0] + " is built into cmd: " +
			remedy.Command(append([]string{"exec", "--", "cmd", "/c"}, args...)...)
	case strings.Contains(name, "-") || slices.Contains(powershellNames(), name):
		return "if it is PowerShell's: " + remedy.Command("powershell", "--command", strings.Join(args, " "))
	case strings.ContainsAny(name, `\/`):
		return "check the path on the node"
	}
	return "give its full path, or add its folder to the node's PATH (spec.setup.path)"
}

func cmdBuiltins() []string {
	return []string{
		"assoc", "break", "call", "cd", "chdir", "cls", "color", "copy", "date", "del", "dir", "echo",
		"endlocal", "erase",
		"for", "ftype", "goto", "if", "md", "mkdir", "mklink", "move", "path", "pause", "popd", "prompt", "pushd", "rd",
		"rem", "ren", "rename", "rmdir", "set", "setlocal", "shift", "start", "time", "title", "type",
		"ver", "verify", "vol",
	}
}

func powershellNames() []string {
	return []string{"cat", "cp", "gc", "gci", "gps", "gsv", "ls", "mv", "ps", "pwd", "rm", "select", "sls"}
}

package node

import (
	"strings"
	"sync/atomic"
)

// noSuchCommand is the exit code of every POSIX shell, and of no Windows shell, for a
// command that does not exist.
const noSuchCommand = 127

// sshShell spells command lines for the default shell of a node's SSH server. cmd and PowerShell parse swdt's lines
// alike: words without quotes, and paths with backslashes. A POSIX shell, such as Git's bash, removes backslashes, and
// sshd passes them on as they are (Win32-OpenSSH's w32-doexec.c, do_exec_windows). sshShell writes lines for cmd and
// PowerShell until a command has shown that the shell is a POSIX shell.
type sshShell struct{ posix atomic.Bool }

// learn notes the exit code of a command. It reports whether that has shown that the shell is a POSIX shell, so that
// the command is worth a second try.
func (s *sshShell) learn(exitCode int) bool { return exitCode == noSuchCommand && !s.posix.Swap(true) }

// program returns the command line that runs a program with arguments. No word has a space or a character that a shell
// interprets, except the backslashes of the program's path.
func (s *sshShell) program(path string, args []string) string {
	if s.posix.Load() {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	return strings.Join(append([]string{path}, args...), " ")
}

// cmd returns the command line that runs a command of cmd with cmd's switches, such as /c.
func (s *sshShell) cmd(switches, command string) string {
	if !s.posix.Load() {
		return "cmd " + switches + " " + command
	}
	// The runtime of Git's bash and that of MSYS2 would convert /c to C:/; each has a variable against that.
	return "MSYS_NO_PATHCONV=1 MSYS2_ARG_CONV_EXCL='*' cmd.exe " + switches + " '" + command + "'"
}

package simulated

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

// powershellMain is not a PowerShell. Its options and the encoding of a command are those of about_PowerShell_exe. It handles Chocolatey's installer, and the simplest
// statements: output of a literal, exit, and commands that are programs. Other statements fail; a
// test can answer them with Machine.Script.
func powershellMain(ctx context.Context, p *Process) int {
	if p.Terminal != nil && !slices.ContainsFunc(p.Args, namesScript) {
		return powershellOnTerminal(ctx, p)
	}
	script, err := powershellScript(p)
	if err != nil {
		fmt.Fprintf(p.Stderr, "powershell: %v\r\n", err)
		return 1
	}
	if strings.Contains(fold(script), chocoHost+"/install.ps1") {
		return p.runChocoInstaller(script)
	}
	if script, err = p.unwrapped(script); err != nil {
		fmt.Fprintf(p.Stderr, "powershell: %v\r\n", err)
		return 1
	}
	return runStatements(ctx, p, script)
}

// namesScript reports whether an argument of PowerShell precedes a script.
func namesScript(arg string) bool {
	return slices.Contains([]string{"encodedcommand", "enc", "e", "ec", "command", "c", "file", "f"},
		fold(strings.TrimLeft(arg, "-/")))
}

// unwrapped returns the script inside the frame that package powershell adds. The frame has the
// script as a quoted string, or the path of a file with the script; unwrapped removes this file.
func (p *Process) unwrapped(script string) (string, error) {
	if _, rest, ok := strings.Cut(script, "$swdtFile = '"); ok {
		path := quoted(rest)
		f, err := p.Platform.Files.Open(path)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(io.LimitReader(f, 4<<20))
		f.Close()
		if err != nil {
			return "", err
		}
		return string(text), p.Platform.Files.Remove(path)
	}
	if _, rest, ok := strings.Cut(script, "$swdtScript = '"); ok {
		return quoted(rest), nil
	}
	return script, nil
}

// quoted reads a single-quoted string to its end.
func quoted(s string) string {
	var b strings.Builder
	for {
		text, rest, _ := strings.Cut(s, "'")
		b.WriteString(text)
		if !strings.HasPrefix(rest, "'") {
			return b.String()
		}
		b.WriteByte('\'')
		s = rest[1:]
	}
}

// PowerShellScript returns the text of a PowerShell command line: of
// -EncodedCommand, or of -Command. It is for ScriptFuncs.
func PowerShellScript(args []string) (string, bool) {
	for i, arg := range args {
		name := fold(strings.TrimLeft(arg, "-/"))
		if i+1 >= len(args) {
			break
		}
		switch name {
		case "encodedcommand", "enc", "e", "ec":
			text, err := decodeUTF16(args[i+1])
			return text, err == nil
		case "command", "c":
			return strings.Join(args[i+1:], " "), true
		}
	}
	return "", false
}

func decodeUTF16(encoded string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("decode -EncodedCommand: %w", err)
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

func powershellScript(p *Process) (string, error) {
	if script, ok := PowerShellScript(p.Args); ok && script != "-" {
		return script, nil
	}
	for i, arg := range p.Args {
		if strings.EqualFold(strings.TrimLeft(arg, "-/"), "file") && i+1 < len(p.Args) && p.Args[i+1] != "-" {
			f, err := p.Platform.Files.Open(p.Args[i+1])
			if err != nil {
				return "", err
			}
			defer f.Close()
			text, err := io.ReadAll(io.LimitReader(f, 4<<20))
			return strings.TrimPrefix(string(text), "\ufeff"), err
		}
	}
	text, err := io.ReadAll(io.LimitReader(p.Stdin, 4<<20))
	return string(text), err
}

// runChocoInstaller runs a script that downloads Chocolatey's installer. Without internet, it ends as the script's
// `exit` does in the catch of a failed download, or with 1 as a script without it.
func (p *Process) runChocoInstaller(script string) int {
	m := p.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.options.Internet {
		fmt.Fprintf(p.Stderr, "Exception calling \"DownloadString\" with \"1\" argument(s): \"The remote name could "+
			"not be resolved: '%s'\"\r\n", chocoHost)
		code := 1
		if _, after, caught := strings.Cut(script, "catch { [Console]::Error"); caught {
			_, after, _ = strings.Cut(after, "exit ")
			_, _ = fmt.Sscanf(after, "%d", &code)
		}
		return code
	}
	m.installChoco()
	fmt.Fprintf(p.Stdout, "Installing Chocolatey on the local machine\r\nChocolatey (choco.exe) is now ready.\r\n")
	return 0
}

func runStatements(ctx context.Context, p *Process, script string) int {
	shell := &cmdShell{p: p, folder: p.Folder}
	for line := range strings.SplitSeq(strings.ReplaceAll(script, ";", "\n"), "\n") {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "$") && strings.Contains(line, "="):
			continue
		case strings.EqualFold(word, "exit"):
			if strings.EqualFold(strings.TrimSpace(rest), "$LASTEXITCODE") {
				return 0
			}
			code, _ := strconv.Atoi(strings.TrimSpace(rest))
			return code
		case strings.EqualFold(word, "throw"):
			fmt.Fprintf(p.Stderr, "%s\r\n", literal(rest))
			return 1
		case strings.EqualFold(word, "write-output"), strings.EqualFold(word, "write-host"),
			strings.EqualFold(word, "echo"):
			fmt.Fprintf(p.Stdout, "%s\r\n", literal(rest))
		case strings.HasPrefix(fold(line), "[console]::error.writeline("):
			text := line[len("[console]::error.writeline("):]
			fmt.Fprintf(p.Stderr, "%s\r\n", literal(strings.TrimSuffix(text, ")")))
		case strings.HasPrefix(line, "'") || strings.HasPrefix(line, `"`):
			fmt.Fprintf(p.Stdout, "%s\r\n", literal(line))
		case strings.EqualFold(word, "hostname"), strings.EqualFold(word, "whoami"), strings.EqualFold(word, "cmd"),
			strings.EqualFold(word, "mode"), strings.EqualFold(word, "ping"):
			if code := shell.external(ctx, commandline.Split(line)); code != 0 {
				return code
			}
		case strings.HasSuffix(fold(word), "-mppreference"):
			if problem := p.setExclusion(word, rest); problem != "" {
				fmt.Fprintf(p.Stderr, "%s : %s\r\n", word, problem)
				return 1
			}
		default:
			fmt.Fprintf(p.Stderr, "%s : The simulated Windows has no PowerShell and does not know this statement.\r\n",
				line)
			return 1
		}
	}
	return 0
}

func literal(text string) string {
	text = strings.TrimSpace(text)
	if len(text) >= 2 && (text[0] == '\'' || text[0] == '"') && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}

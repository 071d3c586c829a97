// Package powershell is the only package that builds PowerShell command lines. The agent does
// everything it can with native calls: on a node, swdt runs PowerShell only for Chocolatey's
// installer, for diagnostics and for a user's own scripts. On your machine, swdt controls Hyper-V
// with PowerShell (see vm/hyperv).
//
// A script never passes through a command line parser: it travels base64-encoded (-EncodedCommand)
// or, if it would exceed Windows' limit of 32,767 characters, as a file that only administrators
// can access and that is deleted before its first line runs. In both cases the script runs with
// $ErrorActionPreference 'Stop', without progress bars, with UTF-8 output and with its own stdin.
// Its exit code is the N of `exit N`. Without an exit statement, the exit code is the exit code of
// the last program that the script ran, or 0 if the script ran no program. An uncaught error makes
// the exit code 1 (as in CI systems).
package powershell

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Program is Windows PowerShell, which every node with a shell has.
const Program = "powershell.exe"

// maxInline is the longest command line, in characters. CreateProcess accepts 32,767, but
// sshd, job wrappers and others add characters of their own.
const maxInline = 30000

// prologue is put before every script.
//
// In a process without a console, the console's encodings cannot be set; that is not a
// reason to fail.
const prologue = `$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
try { $swdtUtf8 = New-Object System.Text.UTF8Encoding $false; $OutputEncoding = $swdtUtf8; ` +
	`[Console]::OutputEncoding = $swdtUtf8; [Console]::InputEncoding = $swdtUtf8 } catch { }
`

// epilogue runs the script in $swdtScript and ends with the script's exit code. Out-String renders
// an error as a person would see it, in full width, instead of wrapped at 80 columns.
const epilogue = `
try { & ([scriptblock]::Create($swdtScript)) } catch { ` +
	`[Console]::Error.WriteLine(($_ | Out-String -Width 4096).Trim()); exit 1 }
if (Test-Path -LiteralPath variable:\LASTEXITCODE) { exit $LASTEXITCODE }
exit 0
`

// Args returns the arguments to Program that run a script; ok is false for a script
// that is too long for a command line.
func Args(script string) (args []string, ok bool) {
	args = encoded(prologue + "$swdtScript = " + Quote(normalize(script)) + epilogue)
	length := len(Program)
	for _, arg := range args {
		length += len(arg) + len(` ""`)
	}
	return args, length <= maxInline
}

// FileArgs returns the arguments to Program that read a UTF-8 script file on the node,
// delete the file, and run its content.
func FileArgs(path string) []string {
	return encoded(prologue +
		"$swdtFile = " + Quote(path) + "\n" +
		"$swdtScript = [System.IO.File]::ReadAllText($swdtFile)\n" +
		"Remove-Item -LiteralPath $swdtFile -Force" + epilogue)
}

// ShortArgs returns the arguments to Program that run a script without the prologue. For a short
// script they are a third as long as the arguments that Args returns. ShortArgs is for callers
// whose command line is limited; their scripts must set preferences and the exit code themselves.
func ShortArgs(script string) []string { return encoded(normalize(script)) }

// encoded builds the arguments.
//
// -InputFormat None is set because otherwise powershell.exe itself reads stdin, for
// $input, in a race with the script. -OutputFormat Text is set because otherwise
// PowerShell writes its error stream as CLIXML whenever a command is encoded and stderr
// is not a terminal. -ExecutionPolicy Bypass is for modules that a script imports.
func encoded(script string) []string {
	return []string{
		"-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass",
		"-InputFormat", "None", "-OutputFormat", "Text",
		"-EncodedCommand", encode(script),
	}
}

// encode returns base64 of UTF-16LE, the format of -EncodedCommand.
func encode(script string) string {
	units := utf16.Encode([]rune(script))
	raw := make([]byte, 0, 2*len(units))
	for _, unit := range units {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// Decode returns the script of an -EncodedCommand argument, the inverse of encode. Tests'
// substitutes for PowerShell use it to read the script.
func Decode(argument string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(argument)
	if err != nil {
		return "", err
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

// Quote returns s as a single-quoted string, in which PowerShell expands nothing. It
// doubles single quotes, also the typographic ones, which PowerShell treats alike.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch r {
		case '\'', '\u2018', '\u2019', '\u201a', '\u201b':
			b.WriteRune(r)
		}
		b.WriteRune(r)
	}
	b.WriteByte('\'')
	return b.String()
}

// normalize removes a byte order mark, which is a syntax error in a script block.
func normalize(script string) string { return strings.TrimPrefix(script, "\ufeff") }

// Text decodes a script file, and keeps its line ends. The error is a *windowstext.Error.
func Text(file []byte) (string, error) {
	text, err := windowstext.Decode(file)
	if err != nil {
		return "", err
	}
	text.Encoding = windowstext.UTF8
	return string(text.Encode(text.Content)), nil
}

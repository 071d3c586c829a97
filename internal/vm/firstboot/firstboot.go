// Package firstboot writes the PowerShell script that runs at the first logon of a fresh Windows.
// The script makes the machine reachable over SSH, keeps Windows from sleeping and from asking
// questions, removes the copies of the password that the installation left, may set a new one, and reports each stage
// over the first serial port, which needs no network, driver or agent.
//
// The script consists of fixed parts (stages/*.ps1) and of a head with the values of the options.
// Each value is checked, and quoted by package powershell. No value can change a fixed part, and
// the script holds no secret: the public keys are in a file beside the script.
//
//   - firstboot.go: the options, the script, the command that finds and runs it
//   - stages.go: the stages and their order
//   - stages/: the PowerShell code of the stages, and the code that they share (common.ps1)
//   - mark.go: reading the reports
//   - sealed.go: the new password of the Administrator
//
// No PowerShell has parsed the script yet, and no Windows has run it.
package firstboot

import (
	"crypto/rsa"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/powershell"
)

// FileName is the script's name in the root of a CD.
const FileName = "swdt-first-logon.ps1"

// OpenSSH is the way in which Windows gets its SSH server.
type OpenSSH string

const (
	// BuiltIn enables the server that Windows Server 2025 has.
	BuiltIn OpenSSH = "builtin"
	// Capability downloads Microsoft's OpenSSH from Windows Update. This needs internet, and
	// on Server 2019 it installs OpenSSH 7.7.
	Capability OpenSSH = "capability"
	// Installer runs the MSI of Win32-OpenSSH that is on the CD.
	Installer OpenSSH = "msi"
	// Archive unpacks the zip of Win32-OpenSSH that is on the CD.
	Archive OpenSSH = "zip"
)

// End selects how the script ends if all required stages succeed. If a required stage fails, the
// machine always stays on, so that a person can examine the machine.
type End string

const (
	// Stay leaves the machine running, with a locked screen.
	Stay End = "stay"
	// ShutDown removes the SSH host keys, so that sshd makes new ones at its next start, and
	// shuts the machine down.
	ShutDown End = "shutdown"
	// Generalize does the same as ShutDown, and runs sysprep before the machine shuts down.
	Generalize End = "generalize"
)

// Options select what the script does. Files and folders are names in the root of the CD
// that the script itself is on.
type Options struct {
	OpenSSH     OpenSSH
	OpenSSHFile string // the MSI or zip; only for Installer and Archive
	KeysFile    string // a file with lines of authorized_keys
	// DriverFolder is a folder with drivers, also in its subfolders; "" if there are no drivers.
	DriverFolder string
	// AgentFile is the MSI of QEMU's guest agent; "" if there is no agent.
	AgentFile string
	// RemoveAccount is a local account to delete; "" if there is no account to delete.
	RemoveAccount string
	End           End    // "": Stay
	SysprepFile   string // for Generalize
	// Seal is the key with which the machine seals a new password of the Administrator before it sets it; nil if the
	// password stays. The machine sends the sealed password as a mark of state Sealed.
	Seal *rsa.PublicKey
}

//go:embed stages
var parts embed.FS

// Script returns the script, in ASCII.
func Script(o Options) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteString("# The first logon of a machine that swdt has installed.\n")
	for _, value := range o.values() {
		fmt.Fprintf(&out, "$%s = %s\n", value.name, powershell.Quote(value.text))
	}
	out.WriteString("\n" + part("common"))
	for _, s := range o.stages() {
		out.WriteString("\n" + s.script())
	}
	out.WriteString("\n" + part("end"))
	return []byte(out.String()), nil
}

// values returns the variables of the script's head.
func (o Options) values() []struct{ name, text string } {
	values := []struct{ name, text string }{
		{"swdtOpenSSHFile", o.OpenSSHFile},
		{"swdtKeysFile", o.KeysFile},
		{"swdtDriverFolder", o.DriverFolder},
		{"swdtAgentFile", o.AgentFile},
		{"swdtRemoveAccount", o.RemoveAccount},
		{"swdtSysprepFile", o.SysprepFile},
		{"swdtEnd", string(o.end())},
	}
	if o.Seal != nil { // the scripts of golden images, whose keys depend on them, stay as they are
		values = append(values, struct{ name, text string }{
			"swdtPasswordKey", base64.StdEncoding.EncodeToString(o.Seal.N.Bytes()),
		})
	}
	return values
}

func (o Options) end() End {
	if o.End == "" {
		return Stay
	}
	return o.End
}

var (
	fileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}[A-Za-z0-9_]$`)
	account  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,19}$`)
)

// check returns every problem of the options at once.
func (o Options) check() error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	name := func(field, value string, needed bool) {
		if value == "" && !needed {
			return
		}
		if !fileName.MatchString(value) {
			refuse("%s %q: write the name of a file in the CD's root, of letters, digits, dots, _ and -", field, value)
		}
	}
	withFile := false
	switch o.OpenSSH {
	case Installer, Archive:
		withFile = true
	case BuiltIn, Capability:
		if o.OpenSSHFile != "" {
			refuse("OpenSSH %q needs no file, but %q was given; remove it", string(o.OpenSSH), o.OpenSSHFile)
		}
	default:
		refuse("OpenSSH %q: write builtin, capability, msi or zip", string(o.OpenSSH))
	}
	name("OpenSSH's file", o.OpenSSHFile, withFile)
	name("keys", o.KeysFile, true)
	name("driver folder", o.DriverFolder, false)
	name("guest agent", o.AgentFile, false)
	switch o.end() {
	case Stay, ShutDown, Generalize:
		name("sysprep's file", o.SysprepFile, o.End == Generalize)
	default:
		refuse("end %q: write stay, shutdown or generalize", string(o.End))
	}
	if o.RemoveAccount != "" && !account.MatchString(o.RemoveAccount) {
		refuse("account to remove %q: write the name of a local account, of letters, digits and -", o.RemoveAccount)
	}
	return errors.Join(append(problems, checkSeal(o.Seal))...)
}

// find is the PowerShell code that runs the script from the drive that has it. If no drive has the
// script, find reports that on the serial port.
const find = `foreach ($d in [IO.DriveInfo]::GetDrives()) { if ($d.IsReady) { ` +
	`$f = Join-Path $d.Name '` + FileName + `'; if (Test-Path -LiteralPath $f) { & $f; exit $LASTEXITCODE } } }
$p = New-Object IO.Ports.SerialPort COM1; $p.Open()
$p.WriteLine('SWDT exit=2 no drive has the script'); $p.Close(); exit 2`

// Command returns the command line that finds the script on any drive and runs it, for
// FirstLogonCommands. The command line has fewer than 1024 characters.
func Command() string {
	return powershell.Program + " " + strings.Join(powershell.ShortArgs(find), " ")
}

package winsetup

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
)

// Logon holds the answers that the first logon needs.
type Logon struct {
	ComputerName string
	Password     string // of the Administrator
	Script       string // the name of a file in the root of a CD
}

// mostName is the maximum length of a NetBIOS name.
const mostName = 15

// logon checks that the first start of Windows asks the user nothing, and returns the answers for the
// first logon.
func (a answers) logon() (Logon, error) {
	name := a.component("specialize", "Microsoft-Windows-Shell-Setup").text("ComputerName")
	if name == "" || len(name) > mostName {
		return Logon{}, invalid("specialize", "the computer's name %q", name)
	}
	shell := a.component("oobeSystem", "Microsoft-Windows-Shell-Setup")
	hidden := shell.at("OOBE")
	for _, page := range []string{
		"HideEULAPage", "HideLocalAccountScreen", "HideOEMRegistrationScreen", "HideOnlineAccountScreens",
		"HideWirelessSetupInOOBE",
	} {
		if hidden.text(page) != "true" {
			return Logon{}, screen("Hi there", "The first start shows a page, since "+page+" is not true.")
		}
	}
	password, err := decoded(shell.at("UserAccounts", "AdministratorPassword"), "AdministratorPassword")
	if err != nil {
		return Logon{}, err
	}
	auto := shell.at("AutoLogon")
	again, err := decoded(auto.at("Password"), "Password")
	if err != nil {
		return Logon{}, err
	}
	if auto.text("Enabled") != "true" || number(auto, "LogonCount") < 1 || again != password {
		return Logon{}, screen("Administrator", "The password is incorrect. Try again.")
	}
	script, err := firstCommand(shell)
	return Logon{ComputerName: name, Password: password, Script: script}, err
}

// decoded returns the password in an element. If PlainText is not true, the element's value is encoded
// as base64 of UTF-16, and suffix, the name of the element, follows the password.
func decoded(e *element, suffix string) (string, error) {
	text := e.text("Value")
	if e.text("PlainText") == "true" {
		return text, nil
	}
	units, err := wide(text)
	password, ok := strings.CutSuffix(units, suffix)
	if err != nil || !ok || password == "" {
		return "", invalid("oobeSystem", "%s holds no password", suffix)
	}
	return password, nil
}

// wide decodes base64 of UTF-16, little endian.
func wide(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data)%2 != 0 {
		return "", fmt.Errorf("%d characters that are not base64 of UTF-16", len(text))
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

var (
	encodedCommand = regexp.MustCompile(`(?i)^powershell(?:\.exe)? .*-EncodedCommand ([A-Za-z0-9+/=]+)$`)
	scriptName     = regexp.MustCompile(`'([^']+\.ps1)'`)
)

// mostCommand is the maximum length of a command of the first logon.
const mostCommand = 1024

// firstCommand returns the name of the script that the command of the first logon looks for.
func firstCommand(shell *element) (string, error) {
	commands := shell.at("FirstLogonCommands").all("SynchronousCommand")
	if len(commands) != 1 {
		return "", invalid("oobeSystem", "%d commands of the first logon", len(commands))
	}
	line := commands[0].text("CommandLine")
	found := encodedCommand.FindStringSubmatch(line)
	if len(line) > mostCommand || found == nil {
		return "", invalid("oobeSystem", "the command of the first logon, of %d characters", len(line))
	}
	text, err := wide(found[1])
	if err != nil {
		return "", invalid("oobeSystem", "the command of the first logon: %v", err)
	}
	name := scriptName.FindStringSubmatch(text)
	if name == nil {
		return "", invalid("oobeSystem", "the command of the first logon names no script: %s", text)
	}
	return name[1], nil
}

// Package answer writes the answer files of Windows Setup: one installs Windows from its media
// without a question, one generalises the installed image, and one answers the first start of a VM
// that is made from the image.
//
// The files are templates. Each value that a user writes is first checked by a rule for its field; a
// value that breaks its rule is refused by an error that names the field. The templates escape each
// value, so that no value can become markup.
//
//   - answer.go: the options, and the three files
//   - unattend.xml.tmpl, sysprep.xml: their text
//   - release.go: the releases of Windows, and how their answers differ
//   - validate.go, timezones.txt: what Setup accepts. timezones.txt has what `tzutil /l` prints
//   - password.go: passwords, and their form in a file
//
// The settings are Microsoft's: "Unattended Windows Setup Reference",
// https://learn.microsoft.com/windows-hardware/customize/desktop/unattend/. No real Windows Setup has
// read a file of this package yet.
package answer

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"strings"
	"text/template"
)

// Names of the answer files in the root of a CD. Windows Setup looks for SetupFile while it
// installs, and for GeneralizedFile when a generalised image starts. The script of the first logon
// passes the path of SysprepFile to sysprep.
const (
	SetupFile       = "Autounattend.xml"
	GeneralizedFile = "Unattend.xml"
	SysprepFile     = "sysprep.xml"
)

// Options are the answers to Setup's questions. Release, Language, ComputerName and Password are
// required; the function Setup also requires Index. If a required field is missing, the functions
// of this package return an error. The other fields may have their zero values.
type Options struct {
	Release Release
	// Core reports whether the edition is a Server Core, which has no Server Manager.
	Core bool
	// Index is the number of the image in install.wim, from 1.
	Index int
	// Language is the language of the media, such as en-US. If the media have another language,
	// Setup stops and asks.
	Language string
	// ComputerName is the NetBIOS name. It has 1 to 15 characters out of A–Z, a–z, 0–9 and -.
	ComputerName string
	// TimeZone is Windows' name of the time zone, such as "W. Europe Standard Time"; "" means UTC.
	TimeZone string
	// Password is the password of the built-in Administrator.
	Password Password
	// ProductKey is five groups of five characters; "" for evaluation media.
	ProductKey string
	// DriverFolder is a folder in the root of the CD with the answer file; "" if there are no
	// drivers. Setup searches this folder and the folders below it for drivers.
	DriverFolder string
	// FirstLogon runs once, at the first logon of the Administrator, which is automatic.
	FirstLogon []Command
}

// Command is a command line of the first logon.
type Command struct {
	Line        string // at most 1024 characters
	Description string
}

// SetupAccount is the name of an account that the answers for Windows 11 make, because the first
// start of Windows 11 asks for a user if the Administrator is the only account. No user logs on with
// this account: the script of the Administrator's first logon removes it.
const SetupAccount = "swdt-setup"

// driverLetters are the drive letters that Windows PE may give to the CD with the drivers.
const driverLetters = "CDEFG"

//go:embed unattend.xml.tmpl
var unattend string

//go:embed sysprep.xml
var sysprep []byte

// Setup returns Autounattend.xml. With this file, Windows Setup wipes disk 0, installs the image of
// o.Index for UEFI, and asks nothing until the first logon unless a step fails. The file holds the
// password.
func Setup(o Options) ([]byte, error) { return o.write(forSetup) }

// Generalized returns Unattend.xml for a machine made of a generalised image. The file answers the
// questions of the first start, and holds the password. o needs neither an index nor drivers.
func Generalized(o Options) ([]byte, error) { return o.write(forImage) }

// Sysprep returns the file for sysprep /unattend, which generalises an image. It does not restart the
// evaluation period (SkipRearm), and keeps devices installed, since all VMs of an image have the same
// devices. The file has only settings of the pass generalize, and no secret, because sysprep keeps a
// copy of the file in the image. Setup later ignores this copy, since it has no settings for the later
// passes.
func Sysprep() []byte { return bytes.Clone(sysprep) }

// write checks the options and returns an answer file.
func (o Options) write(use purpose) ([]byte, error) {
	o = o.withDefaults()
	if err := o.check(use); err != nil {
		return nil, err
	}
	form, err := template.New("unattend.xml").Funcs(template.FuncMap{
		"text": escape, "encode": encode, "next": func(n int) int { return n + 1 },
	}).Parse(unattend)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = form.Execute(&out, struct {
		Options
		Installs, Client            bool
		Administrator, SetupAccount string
		Drives                      []string
	}{o, use == forSetup, o.Release.client(), Administrator(o.Language), SetupAccount, strings.Split(driverLetters, "")})
	return out.Bytes(), err
}

// escape returns a text as the content of an element.
func escape(text string) (string, error) {
	var out strings.Builder
	err := xml.EscapeText(&out, []byte(text))
	return out.String(), err
}

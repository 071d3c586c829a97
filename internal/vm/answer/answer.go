// Package answer writes the answer files of Windows Setup: one installs Windows from its media
// without a question, one generalises the installed image, and one answers the first start of a VM
// that is made from the image.
//
// The files are typed values that encoding/xml marshals, so that no value can become
// markup. Each value that a user writes is first checked by a rule for its field. A value
// that breaks its rule is refused by an error that names the field.
//
//   - answer.go: the options, and the three files
//   - release.go: the releases of Windows, and how their answers differ
//   - validate.go, timezones.go: what Setup accepts
//   - password.go: passwords, and their form in a file
//   - document.go: the grammar of the files, that is, passes, components and attributes
//   - windowspe.go, specialize.go, oobe.go, generalize.go: the settings of the passes
//
// The settings are Microsoft's: "Unattended Windows Setup Reference",
// https://learn.microsoft.com/windows-hardware/customize/desktop/unattend/. No real Windows Setup has
// read a file of this package yet.
package answer

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
	// Keyboard is the input locale, such as de-DE or 0407:00000407; "" means the value of Language.
	Keyboard string
	// UserLocale formats dates and numbers, such as de-DE; "" means the value of Language.
	UserLocale string
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
	// RemoteDesktop allows Remote Desktop, also in the firewall.
	RemoteDesktop bool
}

// Command is a command line of the first logon.
type Command struct {
	Line        string // at most 1024 characters
	Description string
}

// Setup returns Autounattend.xml. With this file, Windows Setup wipes disk 0, installs the image of
// o.Index for UEFI, and asks nothing until the first logon unless a step fails. The file holds the
// password.
func Setup(o Options) ([]byte, error) {
	o = o.withDefaults()
	if err := o.check(forSetup); err != nil {
		return nil, err
	}
	return document(
		settings{Pass: windowsPE, Components: o.windowsPE()},
		settings{Pass: specialize, Components: o.specialize()},
		settings{Pass: oobeSystem, Components: o.oobeSystem()},
	)
}

// Generalized returns Unattend.xml for a machine made of a generalised image. The file answers the
// questions of the first start, and holds the password. o needs neither an index nor drivers.
func Generalized(o Options) ([]byte, error) {
	o = o.withDefaults()
	if err := o.check(forImage); err != nil {
		return nil, err
	}
	return document(
		settings{Pass: specialize, Components: o.specialize()},
		settings{Pass: oobeSystem, Components: o.oobeSystem()},
	)
}

// Sysprep returns the file for sysprep /unattend, which generalises an image. The file has only
// settings of the pass generalize, and no secret, because sysprep keeps a copy of the file in the
// image. Setup later ignores this copy, since it has no settings for the later passes.
func Sysprep() ([]byte, error) {
	return document(settings{Pass: generalize, Components: generalizing()})
}

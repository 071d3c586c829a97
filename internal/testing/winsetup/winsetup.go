// Package winsetup imitates Windows Setup and the first logon, as far as an unattended
// installation depends on them: it finds the answer file by Setup's rules, and checks everything
// that the file names against the media, the CDs and the disk. So it proves that answer file, script
// and CDs fit together. It does not prove that a real Windows accepts them.
//
// The package reads the files with its own code, so that it does not repeat a mistake of the code
// that writes the files. e2e/vmguest runs the package in a virtual machine, from a CD whose [Mode]
// can make the installation fail.
//
//   - winsetup.go: the decisions of Setup
//   - screen.go: the screens at which Setup waits
//   - mode.go: failures on demand
//   - answers.go: the answer file
//   - disk.go, gpt.go: partitions
//   - logon.go: passwords, and the command of the first logon
//   - script.go: the script of the first logon
package winsetup

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm/media/wim"
)

// The files that Setup looks for on CDs.
const (
	answerFile      = "Autounattend.xml" // while Setup installs
	firstStartFile  = "Unattend.xml"     // when a generalised image starts for the first time
	imageFile       = "sources/install.wim"
	mostAnswerBytes = 1 << 20
)

// Drive is a CD drive with a disc.
type Drive struct {
	Letter string // such as D
	FS     fs.FS
}

// Machine is the hardware that Setup runs on.
type Machine struct {
	Drives []Drive // the drive with the media and other drives, in the order of their letters
	// DiskBytes is the size of disk 0; 0: there is no disk.
	DiskBytes int64
	// VirtioDisk and VirtioNetwork report whether the disk and the network card are virtio devices,
	// for which Windows needs drivers.
	VirtioDisk, VirtioNetwork bool
}

// Plan holds the decisions of Setup.
type Plan struct {
	Mode       Mode
	Partitions []Partition
	Edition    string
	Logon      Logon
	// Network reports whether Windows has a driver for the network card.
	Network bool
}

// Install returns the decisions of Setup. If Setup waits for a person, the error is a *Screen.
func Install(m Machine) (Plan, error) {
	media, ok := m.media()
	if !ok {
		return Plan{}, screen("Windows Setup", "A media driver your computer needs is missing.")
	}
	mode, err := ReadMode(media)
	if err != nil {
		return Plan{}, err
	}
	drive, ok := m.with(answerFile)
	if !ok || mode == IgnoreAnswers {
		return Plan{}, screen("Windows Setup", "Language to install, time and currency format, keyboard or input method")
	}
	a, err := readAnswers(drive.FS, answerFile)
	if err != nil {
		return Plan{}, err
	}
	images, err := images(media)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Mode: mode}
	if err := a.checkLanguage(images); err != nil {
		return Plan{}, err
	}
	drivers, err := m.drivers(a)
	if err != nil {
		return Plan{}, err
	}
	plan.Network = mode != NoNetwork && (!m.VirtioNetwork || drivers["netkvm.inf"])
	if m.DiskBytes == 0 || mode == NoDisk || m.VirtioDisk && !drivers["viostor.inf"] {
		return Plan{}, screen("Where do you want to install Windows?",
			"We couldn't find any drives. To get a storage driver, click Load driver.")
	}
	if plan.Edition, err = a.edition(images, mode); err != nil {
		return Plan{}, err
	}
	if plan.Partitions, err = a.partitions(m.DiskBytes); err != nil {
		return Plan{}, err
	}
	plan.Logon, err = a.logon()
	return plan, err
}

// FirstStart returns the answers for the first logon of a generalised image, which needs an answer file
// when it starts. If the image waits for a person, the error is a *Screen.
func FirstStart(m Machine) (Logon, error) {
	drive, ok := m.with(firstStartFile)
	if !ok {
		return Logon{}, screen("Hi there", "Let's start with region. Is this right?")
	}
	a, err := readAnswers(drive.FS, firstStartFile)
	if err != nil {
		return Logon{}, err
	}
	return a.logon()
}

// media returns the disc with the image of Windows.
func (m Machine) media() (fs.FS, bool) {
	drive, ok := m.with(imageFile)
	return drive.FS, ok
}

// with returns the first drive that has a file of this name, ignoring case.
func (m Machine) with(name string) (Drive, bool) {
	for _, drive := range m.Drives {
		if _, ok := find(drive.FS, name); ok {
			return drive, true
		}
	}
	return Drive{}, false
}

// find returns the real path of a file or folder that equals path except for case.
func find(fsys fs.FS, path string) (string, bool) {
	at := "."
	for part := range strings.SplitSeq(path, "/") {
		entries, err := fs.ReadDir(fsys, at)
		if err != nil {
			return "", false
		}
		i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), part) })
		if i < 0 {
			return "", false
		}
		at = strings.TrimPrefix(at+"/"+entries[i].Name(), "./")
	}
	return at, true
}

// read returns the content of a file, at most mostAnswerBytes of it.
func read(fsys fs.FS, name string) ([]byte, error) {
	path, ok := find(fsys, name)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	file, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, mostAnswerBytes))
}

// images returns the editions of the media.
func images(media fs.FS) ([]wim.Image, error) {
	path, _ := find(media, imageFile)
	file, err := media.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	r, ok := file.(io.ReaderAt)
	if !ok {
		return nil, errors.New("the file system of the media cannot read at a position")
	}
	found, err := wim.Read(r, info.Size())
	if err != nil {
		return nil, screen("Windows Setup", "Windows cannot open the required file "+imageFile+". "+err.Error())
	}
	return found.Images, nil
}

// edition returns the name of the edition that the answers choose.
func (a answers) edition(images []wim.Image, mode Mode) (string, error) {
	data := a.setup("ImageInstall", "OSImage", "InstallFrom", "MetaData")
	wanted := data.text("Value")
	for _, image := range images {
		if data.text("Key") == "/IMAGE/INDEX" && wanted == strconv.Itoa(image.Index) && mode != WrongEdition {
			return image.Name, a.checkKey(image)
		}
	}
	return "", screen("Select the operating system you want to install",
		"The image "+data.text("Key")+" "+strconv.Quote(wanted)+" of the answer file is not on the media.")
}

// checkKey returns the screen that asks for the license, unless the answers accept the license. It
// returns a screen about the product key if the edition needs a key and the answers have none, or if
// the edition needs no key and the answers have one.
func (a answers) checkKey(image wim.Image) error {
	user := a.setup("UserData")
	evaluation := strings.HasSuffix(image.Edition, "Eval")
	key := user.at("ProductKey").text("Key")
	switch {
	case user.text("AcceptEula") != "true":
		return screen("Applicable notices and license terms", "Please read this so you know what you're agreeing to.")
	case key == "" && !evaluation:
		return screen("Activate Windows", "Enter your product key.")
	case key != "" && evaluation:
		return screen("Windows Setup", "The product key entered does not match any of the Windows images.")
	}
	return nil
}

// checkLanguage returns the screen that asks for a language, unless the media have both languages
// that the answers set: UILanguage and the UILanguage of SetupUILanguage.
func (a answers) checkLanguage(images []wim.Image) error {
	component := a.component("windowsPE", "Microsoft-Windows-International-Core-WinPE")
	for _, wanted := range []string{component.text("UILanguage"), component.at("SetupUILanguage").text("UILanguage")} {
		known := slices.ContainsFunc(images, func(i wim.Image) bool { return slices.Contains(i.Languages, wanted) })
		if wanted == "" || !known {
			return screen("Windows Setup", "Language to install: "+strconv.Quote(wanted)+" is not on the media.")
		}
	}
	return nil
}

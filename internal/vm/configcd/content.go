package configcd

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

// Names in the CD's root, besides the names that packages answer and firstboot define.
const (
	driverFolder = "drivers"
	keysFile     = "authorized_keys"
	opensshName  = "openssh" // the extension of the given file is added to this name
	agentFile    = "guest-agent.msi"
)

// content holds the files of the CD, except for the drivers.
type content struct {
	texts []struct {
		name    string
		content []byte
	}
	files []struct {
		name string
		from File
	}
}

func (c *content) write(name string, text []byte) {
	c.texts = append(c.texts, struct {
		name    string
		content []byte
	}{name, text})
}

func (c *content) copy(name string, from File) {
	c.files = append(c.files, struct {
		name string
		from File
	}{name, from})
}

// content returns the files of the CD, except for the drivers. The error joins every problem of the
// options.
func (o Options) content() (*content, error) {
	c := &content{}
	answers := o.Answer
	answers.DriverFolder = ""
	answers.FirstLogon = []answer.Command{{Line: firstboot.Command(), Description: "Prepare this machine for swdt"}}
	script := firstboot.Options{KeysFile: keysFile, End: o.End, Seal: o.Seal}
	var problems []error
	if o.Drivers != nil {
		answers.DriverFolder, script.DriverFolder = driverFolder, driverFolder
		problems = append(problems, checkDrivers(o.Drivers))
	}
	if !o.Agent.absent() {
		script.AgentFile = agentFile
		c.copy(agentFile, o.Agent)
	}
	if o.Answer.Release == answer.Windows11 {
		script.RemoveAccount = answer.SetupAccount
	}
	problems = append(problems, o.openSSH(&script, c))
	if o.End == firstboot.Generalize {
		script.SysprepFile = answer.SysprepFile
		c.write(answer.SysprepFile, answer.Sysprep())
	}

	keys, err := authorizedKeys(o.Keys)
	problems = append(problems, err)
	c.write(keysFile, keys)
	text, err := firstboot.Script(script)
	problems = append(problems, err)
	c.write(firstboot.FileName, text)
	name, write := answer.SetupFile, answer.Setup
	if o.FirstStart {
		name, write = answer.GeneralizedFile, answer.Generalized
	}
	answered, err := write(answers)
	problems = append(problems, err)
	c.write(name, answered)
	return c, errors.Join(problems...)
}

// openSSH chooses the source of OpenSSH: the given file, or else the OpenSSH of Windows.
func (o Options) openSSH(script *firstboot.Options, c *content) error {
	switch {
	case !o.OpenSSH.absent():
		extension := strings.ToLower(path.Ext(o.OpenSSH.Path))
		ways := map[string]firstboot.OpenSSH{".msi": firstboot.Installer, ".zip": firstboot.Archive}
		way, known := ways[extension]
		if !known {
			return fmt.Errorf("OpenSSH %q is neither an MSI nor a zip; use one of a release of Win32-OpenSSH", o.OpenSSH.Path)
		}
		script.OpenSSH, script.OpenSSHFile = way, opensshName+extension
		c.copy(script.OpenSSHFile, o.OpenSSH)
	case o.FirstStart || o.Answer.Release == answer.Server2025:
		script.OpenSSH = firstboot.BuiltIn
	default:
		script.OpenSSH = firstboot.Capability
	}
	return nil
}

// errFound ends the walk of checkDrivers at the first driver.
var errFound = errors.New("found")

// checkDrivers returns an error if there is no driver at all: without a driver, Setup finds no
// disk, stops and asks.
func checkDrivers(drivers fs.FS) error {
	err := fs.WalkDir(drivers, ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.EqualFold(path.Ext(name), ".inf") {
			return errFound
		}
		return err
	})
	switch {
	case errors.Is(err, errFound):
		return nil
	case err != nil:
		return fmt.Errorf("read the drivers: %w", err)
	}
	return errors.New("the driver folders have no .inf file; give those of this Windows, such as viostor/2k22/amd64")
}

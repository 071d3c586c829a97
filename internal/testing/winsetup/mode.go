package winsetup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// ModeFile is the name of a file in the root of the media that contains a Mode: {"mode": "no-disk"}.
const ModeFile = "swdt-setup.json"

// Mode selects how an installation ends.
type Mode string

const (
	Success       Mode = ""
	WrongEdition  Mode = "wrong-edition"  // Setup does not find the edition, and asks
	IgnoreAnswers Mode = "ignore-answers" // Setup does not find the answer file, and asks
	NoDisk        Mode = "no-disk"        // Setup finds no disk, and asks
	Hang          Mode = "hang"           // Setup stops while it copies
	RebootLoop    Mode = "reboot-loop"    // the installed Windows restarts again and again
	NoNetwork     Mode = "no-network"     // the installed Windows gets no address
	ScriptFails   Mode = "script-fails"   // the first-boot script cannot install OpenSSH
)

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{Success, WrongEdition, IgnoreAnswers, NoDisk, Hang, RebootLoop, NoNetwork, ScriptFails}
}

// ReadMode returns the mode of a CD that imitates Windows' media; Success if the CD has no ModeFile.
func ReadMode(media fs.FS) (Mode, error) {
	data, err := read(media, ModeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Success, nil
	}
	var file struct{ Mode Mode }
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err == nil && !slices.Contains(Modes(), file.Mode) {
		err = fmt.Errorf("unknown mode %q; use one of %q", file.Mode, Modes())
	}
	if err != nil {
		return Success, fmt.Errorf("read %s of the media: %w", ModeFile, err)
	}
	return file.Mode, nil
}

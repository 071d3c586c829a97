// Package firmware finds a UEFI firmware for QEMU by the descriptors that distributions install
// beside it (QEMU's docs/interop/firmware.json), since the paths of the firmware differ between
// distributions.
package firmware

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Want describes the firmware that a VM needs.
type Want struct {
	SecureBoot bool // the firmware has Microsoft's keys enrolled, so that Windows boots
}

// Firmware is the files of one firmware.
type Firmware struct {
	Code Image // shared by all VMs, read-only
	Vars Image // the template for the variables of one VM
	SMM  bool  // works only with System Management Mode
	// Descriptor is the file that describes the firmware.
	Descriptor string
}

// Image is a file with its format.
type Image struct {
	Path   string `json:"filename"`
	Format string `json:"format"` // raw or qcow2
}

// MissingError reports that no firmware fits.
type MissingError struct {
	Want    Want
	Folders []string
	// Unusable explains for each descriptor why it does not fit.
	Unusable []string
}

func (e *MissingError) Error() string {
	kind := "UEFI firmware"
	if e.Want.SecureBoot {
		kind = "UEFI firmware with secure boot and enrolled keys"
	}
	return fmt.Sprintf("find %s for QEMU: none of the %d descriptors in %v describes it; %s",
		kind, len(e.Unusable), e.Folders, e.Remedy())
}

// Remedy returns the commands that install the firmware.
func (e *MissingError) Remedy() string {
	return "install it: `sudo apt-get install ovmf` on Debian and Ubuntu, `sudo dnf install edk2-ovmf` on Fedora"
}

// descriptor is the part of the interop format that swdt reads.
type descriptor struct {
	InterfaceTypes []string `json:"interface-types"`
	Mapping        struct {
		Device     string `json:"device"`
		Mode       string `json:"mode"`
		Executable Image  `json:"executable"`
		Template   Image  `json:"nvram-template"`
	} `json:"mapping"`
	Targets []struct {
		Architecture string   `json:"architecture"`
		Machines     []string `json:"machines"`
	} `json:"targets"`
	Features []string `json:"features"`
}

// Folders returns the folders with descriptors, the most important first: the user's, the
// administrator's, the distribution's, and the folder in the installation prefix of QEMU. config is
// the user's folder of configurations, and qemu the path of QEMU.
func Folders(config, qemu string) []string {
	var folders []string
	if filepath.IsAbs(config) {
		folders = append(folders, filepath.Join(config, "qemu", "firmware"))
	}
	folders = append(folders, "/etc/qemu/firmware", "/usr/share/qemu/firmware")
	if filepath.IsAbs(qemu) {
		own := filepath.Join(filepath.Dir(filepath.Dir(qemu)), "share", "qemu", "firmware")
		if !slices.Contains(folders, own) {
			folders = append(folders, own)
		}
	}
	return folders
}

// Find returns the first firmware that fits, in the order of the descriptors' names. A descriptor
// hides descriptors of the same name in later folders. The error is a *MissingError if no firmware
// fits.
func Find(folders []string, want Want) (Firmware, error) {
	found, err := list(folders)
	if err != nil {
		return Firmware{}, err
	}
	missing := &MissingError{Want: want, Folders: folders}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		firmware, err := load(found[name], want)
		if err == nil {
			return firmware, nil
		}
		missing.Unusable = append(missing.Unusable, found[name]+": "+err.Error())
	}
	return Firmware{}, missing
}

// list returns the path of the descriptor for each name.
func list(folders []string) (map[string]string, error) {
	found := map[string]string{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list firmware: %w", err)
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".json" && found[e.Name()] == "" {
				found[e.Name()] = filepath.Join(folder, e.Name())
			}
		}
	}
	return found, nil
}

// maxDescriptor bounds a descriptor in bytes.
const maxDescriptor = 1 << 20

// load reads a descriptor. If it does not fit, the error is the reason.
func load(path string, want Want) (Firmware, error) {
	file, err := os.Open(path)
	if err != nil {
		return Firmware{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDescriptor))
	if err != nil {
		return Firmware{}, err
	}
	firmware, err := parse(content, want)
	if err != nil {
		return Firmware{}, err
	}
	for _, image := range []Image{firmware.Code, firmware.Vars} {
		if info, err := os.Stat(image.Path); err != nil {
			return Firmware{}, err
		} else if !info.Mode().IsRegular() {
			return Firmware{}, fmt.Errorf("%s is no file", image.Path)
		}
	}
	firmware.Descriptor = path
	return firmware, nil
}

// parse returns the firmware that a descriptor describes, if it fits.
func parse(content []byte, want Want) (Firmware, error) {
	if len(content) == 0 {
		return Firmware{}, errors.New("it is empty, which hides descriptors of the same name")
	}
	var d descriptor
	if err := json.Unmarshal(content, &d); err != nil {
		return Firmware{}, err
	}
	has := func(feature string) bool { return slices.Contains(d.Features, feature) }
	switch {
	case !slices.Contains(d.InterfaceTypes, "uefi"):
		return Firmware{}, errors.New("it is no UEFI")
	case d.Mapping.Device != "flash" || d.Mapping.Mode != "" && d.Mapping.Mode != "split":
		return Firmware{}, errors.New("it does not have code and variables in two flash devices")
	case !d.fits():
		return Firmware{}, errors.New("it is for other machines than q35 of x86_64")
	case want.SecureBoot && !has("secure-boot"):
		return Firmware{}, errors.New("it has no secure boot")
	case want.SecureBoot && !has("enrolled-keys"):
		return Firmware{}, errors.New("it has no keys for secure boot")
	case !want.SecureBoot && has("enrolled-keys"):
		return Firmware{}, errors.New("it enforces secure boot")
	case !want.SecureBoot && has("requires-smm"):
		return Firmware{}, errors.New("it needs SMM, which plain UEFI does without")
	}
	for _, image := range []Image{d.Mapping.Executable, d.Mapping.Template} {
		if !filepath.IsAbs(image.Path) {
			return Firmware{}, fmt.Errorf("its file %q has no absolute path", image.Path)
		}
		if image.Format != "raw" && image.Format != "qcow2" {
			return Firmware{}, fmt.Errorf("its file %s has the format %q", image.Path, image.Format)
		}
	}
	return Firmware{Code: d.Mapping.Executable, Vars: d.Mapping.Template, SMM: has("requires-smm")}, nil
}

// machine is one of the types of machine that swdt uses. A descriptor fits if it names this type.
const machine = "pc-q35-7.1"

func (d descriptor) fits() bool {
	for _, target := range d.Targets {
		for _, pattern := range target.Machines {
			if matched, err := path.Match(pattern, machine); err == nil && matched && target.Architecture == "x86_64" {
				return true
			}
		}
	}
	return false
}

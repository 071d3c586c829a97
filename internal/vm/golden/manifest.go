package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/install"
)

const (
	// manifestVersion is the form of manifests that this swdt writes.
	manifestVersion = 1
	manifestFile    = "manifest.json"
	// maxManifest is far larger than any manifest, in bytes.
	maxManifest = 1 << 20
	// keyLength is the length of a key in hexadecimal digits.
	keyLength = 16
)

// Manifest is the record of an image.
type Manifest struct {
	Version int       `json:"version"` // of this record's form
	Key     string    `json:"key"`
	Created time.Time `json:"created"`
	Content
	Driver string       `json:"driver"`
	Disk   int64        `json:"disk"` // bytes that the guest sees
	Bus    vm.DiskBus   `json:"diskBus"`
	UEFI   vm.Firmware  `json:"firmware"`
	Files  vm.Published `json:"files"`
	// Accelerator is the accelerator that the build used. Seconds is how long each stage took.
	Accelerator string                    `json:"accelerator"`
	Seconds     map[install.Stage]float64 `json:"seconds"`
}

// Content describes the Windows in an image, and the files from which the image was made.
type Content struct {
	Windows    string `json:"windows"` // such as Windows Server 2022
	Edition    string `json:"edition"` // such as Windows Server 2022 Standard Evaluation
	Index      int    `json:"index"`   // number of the edition on the ISO
	Build      string `json:"build"`   // such as 10.0.20348.587
	Evaluation bool   `json:"evaluation"`
	Language   string `json:"language"`
	ISO        string `json:"iso"`     // path
	SHA256     string `json:"sha256"`  // of the ISO
	Drivers    string `json:"drivers"` // path of virtio-win's ISO; empty if there are no drivers
	OpenSSH    string `json:"openSSH"` // path; empty if the image has the OpenSSH of Windows
}

// total returns how long the build took: the sum of its stages.
func (m Manifest) total() (all time.Duration) {
	for _, duration := range m.durations() {
		all += duration
	}
	return all
}

func (m Manifest) durations() map[install.Stage]time.Duration {
	all := map[install.Stage]time.Duration{}
	for stage, seconds := range m.Seconds {
		all[stage] = time.Duration(seconds * float64(time.Second))
	}
	return all
}

// ErrUnknown is returned for a key that no image has.
var ErrUnknown = errors.New("there is no golden image of that key")

// isKey reports whether text has the form of a key.
func isKey(text string) bool { return regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(text) }

// get returns the manifest of an image, or ErrUnknown.
func (s *Images) get(key string) (Manifest, error) {
	if !isKey(key) {
		return Manifest{}, fmt.Errorf("image %.40q: %w", key, ErrUnknown)
	}
	m, err := readManifest(filepath.Join(s.folder(key), manifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, fmt.Errorf("image %s: %w", key, ErrUnknown)
	case err == nil && m.Key != key:
		err = fmt.Errorf("its manifest is of image %q", m.Key)
	}
	if err == nil {
		err = s.complete(m)
	}
	if err != nil {
		return m, fmt.Errorf("image %s is damaged: %w; remove it with `swdt vm image remove %s`", key, err, key)
	}
	return m, nil
}

// complete verifies that the files of an image exist, and that they are in the image's folder.
func (s *Images) complete(m Manifest) error {
	for _, name := range []string{m.Files.Disk, m.Files.Vars} {
		if name == "" && name != m.Files.Disk {
			continue
		}
		if name != filepath.Base(name) || name == "" {
			return fmt.Errorf("its manifest names the file %q", name)
		}
		info, err := os.Lstat(filepath.Join(s.folder(m.Key), name))
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
	}
	return nil
}

func readManifest(path string) (m Manifest, err error) {
	file, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxManifest))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil && m.Version != manifestVersion {
		err = fmt.Errorf("its manifest has form %d, and this swdt knows form %d: use the swdt that made it",
			m.Version, manifestVersion)
	}
	return m, err
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return localfile.Replace(path, append(text, '\n'))
}

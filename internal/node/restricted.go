package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// restricted remembers, by host key, the machines on which this user has restricted
// the agent's folder to administrators. On any other machine the file at the agent's
// path may be a trap and must not be run: every user may create folders in
// C:\ProgramData, and the agent's hash is not secret.
type restricted struct{ file string }

// mostRestricted bounds the entries of the file, which grows since each sandbox has a
// new host key.
const mostRestricted = 1000

func newRestricted(file string) restricted {
	if file == "" {
		if cache, err := localfile.CacheFolder(); err == nil {
			file = filepath.Join(cache, "swdt", "machines.json")
		}
	}
	return restricted{file}
}

func (r restricted) has(hostKey string) bool { return slices.Contains(r.read(), hostKey) }

func (r restricted) read() (hostKeys []string) {
	if r.file == "" {
		return nil
	}
	text, err := os.ReadFile(r.file)
	if err != nil || json.Unmarshal(text, &hostKeys) != nil {
		return nil // swdt restricts the folder once more at the next contact
	}
	return hostKeys
}

// add appends a machine. If two swdt add a machine at once, one entry may be lost. At the next
// contact with the machine of that entry, swdt installs the agent again.
func (r restricted) add(hostKey string) error {
	if r.file == "" {
		return errors.New("there is no cache folder")
	}
	hostKeys := append(r.read(), hostKey)
	text, err := json.Marshal(hostKeys[max(0, len(hostKeys)-mostRestricted):])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o700); err != nil {
		return err
	}
	return localfile.Replace(r.file, text)
}

package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// restricted remembers, by host key, the machines on which this user has
// restricted the agent's folder to administrators. Everybody may create folders
// in C:\ProgramData, and the agent's hash is no secret: on any other machine,
// what stands at the agent's path may be somebody's trap, and must not be run.
type restricted struct{ file string }

// mostRestricted bounds the file: sandboxes come and go with keys of their own.
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
		return nil // then the folder is restricted once more
	}
	return hostKeys
}

// add appends a machine. Of two swdt that do so at once one may be forgotten,
// which costs its next contact an installation.
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

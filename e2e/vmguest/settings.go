//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// The files that a guest looks for on each CD, in the root and one folder deep.
const (
	settingsFile = "swdt-guest.json"
	keysFile     = "authorized_keys" // the end of a name: administrators_authorized_keys also matches
	answerFile   = "unattend.xml"    // also the end of a name: Autounattend.xml also matches
	// mostBytes is the maximum number of bytes that are read of a file.
	mostBytes = 1 << 20
)

// errNoSettings is returned if no CD has anything for the guest.
var errNoSettings = errors.New("no CD has settings")

// settings is the content of swdt-guest.json. The guest keeps its settings on the disk, so it needs the CD only once.
type settings struct {
	Hostname string `json:"hostname,omitempty"`
	// Preset names the content of a fresh disk: minimal (default), node or member.
	Preset string `json:"preset,omitempty"`
	// Shell is cmd (default) or powershell.
	Shell    string   `json:"shell,omitempty"`
	Password string   `json:"password,omitempty"`
	Keys     []string `json:"authorizedKeys,omitempty"`
	// Address includes the length of its prefix. If Address and Gateway are empty, the guest uses
	// DHCP.
	Address string `json:"address,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// Files are written to a fresh disk: contents by path.
	Files map[string]string `json:"files,omitempty"`
	// Restart selects what a restart of the simulated Windows restarts: computer (the default)
	// restarts the whole VM; windows restarts only the simulated Windows, which is quicker.
	Restart string `json:"restart,omitempty"`
}

// with returns s, changed by the fields that a CD sets.
func (s settings) with(found settings) settings {
	s.Hostname = cmp.Or(found.Hostname, s.Hostname)
	s.Preset = cmp.Or(found.Preset, s.Preset)
	s.Shell = cmp.Or(found.Shell, s.Shell)
	s.Password = cmp.Or(found.Password, s.Password)
	s.Address = cmp.Or(found.Address, s.Address)
	s.Gateway = cmp.Or(found.Gateway, s.Gateway)
	s.Restart = cmp.Or(found.Restart, s.Restart)
	if len(found.Keys) > 0 {
		s.Keys = found.Keys
	}
	if len(found.Files) > 0 {
		s.Files = found.Files
	}
	return s
}

func (s settings) keys() ([]ssh.PublicKey, error) {
	var keys []ssh.PublicKey
	for _, line := range s.Keys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("authorized key %q: %w", line, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readCDs returns the settings of the first CD that has any.
func readCDs() (settings, error) {
	drives, err := filepath.Glob("/sys/class/block/sr*")
	if err != nil {
		return settings{}, fmt.Errorf("list the CD drives: %w", err)
	}
	for _, drive := range drives {
		found, err := readCD("/dev/" + filepath.Base(drive))
		if err == nil || !errors.Is(err, errNoSettings) {
			return found, err
		}
	}
	return settings{}, errNoSettings
}

func readCD(device string) (settings, error) {
	const folder = "/cd"
	if err := unix.Mount(device, folder, "iso9660", unix.MS_RDONLY, ""); err != nil {
		return settings{}, errNoSettings // an empty drive, or another file system
	}
	defer unix.Unmount(folder, 0)
	return settingsBelow(folder)
}

// settingsBelow reads the settings of a CD that is mounted at a folder.
func settingsBelow(folder string) (settings, error) {
	var files []string
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return settings{}, fmt.Errorf("list the CD: %w", err)
		}
		files = append(files, found...)
	}
	var s settings
	known, answered := false, ""
	for _, file := range files {
		switch base := strings.ToLower(filepath.Base(file)); {
		case base == settingsFile:
			data, err := readSmall(file)
			if err != nil {
				return s, err
			}
			if err := json.Unmarshal(data, &s); err != nil {
				return s, fmt.Errorf("read %s of the CD: %w", settingsFile, err)
			}
			known = true
		case strings.HasSuffix(base, answerFile):
			if name, err := computerName(file); err == nil {
				answered = name
			}
		case strings.HasSuffix(base, keysFile):
			data, err := readSmall(file)
			if err != nil {
				return s, err
			}
			s.Keys, known = append(s.Keys, keyLines(string(data))...), true
		}
	}
	if !known {
		return s, errNoSettings
	}
	s.Hostname = cmp.Or(s.Hostname, answered)
	return s, nil
}

// computerName returns the computer's name in an answer file of Windows Setup. It returns "" if the
// name in the file is empty, or * for a random name. If the file has no ComputerName, it returns an
// error.
func computerName(file string) (string, error) {
	data, err := readSmall(file)
	if err != nil {
		return "", err
	}
	in := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := in.Token()
		if err != nil {
			return "", fmt.Errorf("find ComputerName in %s: %w", answerFile, err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "ComputerName" {
			continue
		}
		var name string
		if err := in.DecodeElement(&name, &start); err != nil {
			return "", fmt.Errorf("read ComputerName in %s: %w", answerFile, err)
		}
		return strings.Trim(name, "* \r\n\t"), nil
	}
}

func keyLines(text string) (keys []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, line)
		}
	}
	return keys
}

func readSmall(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the CD: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostBytes))
	if err != nil {
		return nil, fmt.Errorf("read the CD: %w", err)
	}
	return data, nil
}

package winsetup

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"regexp"
	"strings"
)

// Script is the script of the first logon, with the CD that contains it.
type Script struct {
	cd     fs.FS
	online bool              // OpenSSH comes from Windows Update
	values map[string]string // the values of the variables at the head of the script, by name
	stages []stage
	// password is the one that the script sets, and sealed the text of its mark; "" if the password stays.
	password, sealed string
}

type stage struct {
	name     string
	required bool
}

var (
	headLine  = regexp.MustCompile(`(?m)^\$swdt([A-Za-z]+) = '([^'\r\n]*)'\r?$`)
	stageLine = regexp.MustCompile(`(?m)^Invoke-Stage '([a-z0-9-]+)' \$(true|false) \{\r?$`)
)

// FindScript reads the script from the first drive that has it.
func FindScript(m Machine, name string) (Script, error) {
	drive, ok := m.with(name)
	if !ok {
		return Script{}, fmt.Errorf("no drive has the script %s", name)
	}
	text, err := read(drive.FS, name)
	if err != nil {
		return Script{}, err
	}
	s := Script{cd: drive.FS, values: map[string]string{}, online: bytes.Contains(text, []byte("Add-WindowsCapability"))}
	for _, line := range headLine.FindAllStringSubmatch(string(text), -1) {
		s.values[line[1]] = line[2]
	}
	for _, line := range stageLine.FindAllStringSubmatch(string(text), -1) {
		s.stages = append(s.stages, stage{name: line[1], required: line[2] == "true"})
	}
	if len(s.stages) == 0 || s.values["End"] == "" {
		return Script{}, fmt.Errorf("the script %s has %d stages, and the end %q", name, len(s.stages), s.values["End"])
	}
	if key := s.values["PasswordKey"]; key != "" {
		if s.password, s.sealed, err = newPassword(key); err != nil {
			return Script{}, fmt.Errorf("the script %s: %w", name, err)
		}
	}
	return s, nil
}

// newPassword returns a password as the script makes it, and the same sealed with the key of a modulus in base64, as
// .NET's RSACryptoServiceProvider.Encrypt(…, true) does: OAEP with SHA-1 and an empty label (RFC 8017, 7.1).
func newPassword(modulus string) (password, sealed string, err error) {
	n, err := base64.StdEncoding.DecodeString(modulus)
	if err != nil {
		return "", "", fmt.Errorf("the key of the password: %w", err)
	}
	random := make([]byte, 24)
	_, _ = rand.Read(random) // never fails
	password = "Aa1-" + base64.StdEncoding.EncodeToString(random)
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: 65537}
	cipher, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, key, []byte(password), nil)
	return password, base64.StdEncoding.EncodeToString(cipher), err
}

// Password returns the password of the Administrator that the script sets; "" if it sets none.
func (s Script) Password() string { return s.password }

// Stays reports whether the machine stays on after the script.
func (s Script) Stays() bool { return s.values["End"] == "stay" }

// Generalizes reports whether the script makes a generalised image.
func (s Script) Generalizes() bool { return s.values["End"] == "generalize" }

// Keys returns the lines of authorized_keys that the script installs.
func (s Script) Keys() ([]string, error) {
	text, err := read(s.cd, s.values["KeysFile"])
	if err != nil {
		return nil, err
	}
	var keys []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, line)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key", s.values["KeysFile"])
	}
	return keys, nil
}

// Run prints the lines that the script writes to the serial port, and reports whether all required
// stages have succeeded. If fail is the name of a stage, this stage fails. If network is false, the
// download of OpenSSH fails.
func (s Script) Run(fail string, network bool, print func(string)) bool {
	var failed []string
	for _, stage := range s.stages {
		if len(failed) > 0 && (stage.name == "hostkeys" || stage.name == "generalize") {
			continue
		}
		print("SWDT stage=" + stage.name + " begin")
		err := s.check(stage.name)
		if stage.name == "password" {
			print("SWDT stage=password sealed " + s.sealed)
		}
		switch {
		case stage.name == fail:
			err = errors.New("it fails on demand")
		case stage.name == "openssh" && s.online && !network:
			err = errors.New("Add-WindowsCapability failed. Error code = 0x8024402c")
		}
		switch {
		case err == nil:
			print("SWDT stage=" + stage.name + " ok")
		case stage.required:
			failed = append(failed, stage.name)
			print("SWDT stage=" + stage.name + " error " + err.Error())
		default:
			print("SWDT stage=" + stage.name + " warn " + err.Error())
		}
	}
	if len(failed) > 0 {
		print("SWDT exit=1 failed: " + strings.Join(failed, " "))
		return false
	}
	print("SWDT exit=0")
	return true
}

// check checks that the CD has the files that a stage needs.
func (s Script) check(stage string) error {
	file := map[string]string{"openssh": "OpenSSHFile", "agent": "AgentFile", "generalize": "SysprepFile"}[stage]
	switch {
	case stage == "keys":
		_, err := s.Keys()
		return err
	case stage == "drivers":
		return s.checkDrivers()
	case file == "", stage == "openssh" && s.values[file] == "": // the stage needs no file
		return nil
	}
	content, err := read(s.cd, s.values[file])
	if err != nil {
		return err
	}
	if len(content) == 0 {
		return fmt.Errorf("%s is empty", s.values[file])
	}
	if stage == "generalize" {
		a, err := readAnswers(s.cd, s.values[file])
		if err != nil {
			return err
		}
		if a.component("generalize", "Microsoft-Windows-PnpSysprep") == nil {
			return fmt.Errorf("%s has no settings to generalise", s.values[file])
		}
	}
	return nil
}

func (s Script) checkDrivers() error {
	root, ok := find(s.cd, s.values["DriverFolder"])
	if !ok {
		return fmt.Errorf("the CD has no folder %s", s.values["DriverFolder"])
	}
	found := false
	err := fs.WalkDir(s.cd, root, func(name string, _ fs.DirEntry, err error) error {
		found = found || strings.HasSuffix(strings.ToLower(name), ".inf")
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no .inf file", s.values["DriverFolder"])
	}
	return err
}

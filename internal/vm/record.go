package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm/answer"
)

// recordVersion is the form of records that this swdt writes.
const recordVersion = 1

// maxRecord is far larger than any record, in bytes.
const maxRecord = 1 << 20

// Names of files in a VM's folder, the same for all drivers.
const (
	recordFile     = "machine.json" // a folder with this file is a VM's folder
	keyFile        = "id_ed25519"
	publicKeyFile  = "id_ed25519.pub"
	knownHostsFile = "known_hosts"
)

// Record is the content of a VM's record file.
type Record struct {
	Machine
	Created time.Time `json:"created"`
	// Complete is false until everything of the VM exists.
	Complete bool `json:"complete"`
	// FixedPorts names the forwards for which the node file sets the port of your machine.
	FixedPorts []string `json:"fixedPorts"`
	// FirstStart is set for a VM that is made from a golden image, until the script of the first
	// start has succeeded and swdt has emptied the VM's CD. Until then, the CD holds the
	// Administrator's password.
	FirstStart bool `json:"firstStart"`
	// Prepared is set once the script of the first start has succeeded.
	Prepared bool `json:"prepared"`

	// OwnPassword is set if the node file names the source of the Administrator's password. The
	// password is then in no file of the VM except the CD of the first start.
	OwnPassword bool `json:"ownPassword"`

	// given is the password that the user has set for a VM that is being made. If given is nil,
	// swdt generates a password.
	given *answer.Password
	// golden is the golden image of a VM that is being made; nil if the VM has none.
	golden *Golden
}

func (r Record) file(name string) string { return filepath.Join(r.Folder, name) }

// Key returns the path of the VM's private SSH key.
func (r Record) Key() string { return r.file(keyFile) }

// KnownHosts returns the path of the file with the VM's host key.
func (r Record) KnownHosts() string { return r.file(knownHostsFile) }

// DamagedError reports a VM whose record cannot be used.
type DamagedError struct {
	Folder string
	Err    error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the VM in %s is damaged: %v; if it does not run, remove the folder by hand", e.Folder, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

func readRecord(folder string) (Record, error) {
	r := Record{Machine: Machine{Folder: folder}}
	text, err := readSmall(filepath.Join(folder, recordFile), maxRecord)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	switch {
	case err != nil:
	case r.Version > recordVersion:
		err = fmt.Errorf("its record has form %d, and this swdt knows form %d: use the swdt that made it", r.Version,
			recordVersion)
	case r.Version != recordVersion || r.UUID == "" || r.Driver == "" || CheckName(r.Name) != nil:
		err = errors.New("its record is incomplete")
	}
	if err != nil {
		return r, &DamagedError{Folder: folder, Err: err}
	}
	return r, nil
}

// readSmall reads a regular file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", filepath.Base(path), limit)
	}
	return text, err
}

// writeRecord replaces the record in a folder. The folder may be the staging folder of a new
// VM, and then differs from r.Folder.
func writeRecord(folder string, r Record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = localfile.Replace(filepath.Join(folder, recordFile), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the VM's record: %w", err)
	}
	return nil
}

package qemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// made is the record of the hardware that the guest sees. Create writes it once, so that the
// hardware stays the same when QEMU is updated.
type made struct {
	Machine string `json:"machine"` // such as pc-q35-7.2
}

// started is the record of the process of a VM. It is written before the process starts.
type started struct {
	Boot        string    `json:"boot"` // the boot of your machine in which the process runs
	Since       time.Time `json:"since"`
	Sockets     string    `json:"sockets"` // the folder with the VM's sockets
	Accelerator string    `json:"accelerator"`
	Passt       bool      `json:"passt"` // the guest reaches other machines through passt, not through QEMU
	// QEMU is the ID of QEMU's process, once this swdt has started it. Every other swdt finds the ID in
	// run/pid, which QEMU itself writes a moment later.
	QEMU int `json:"-"`
	// Logs has the process that writes each log, by the log's path.
	Logs map[string]int `json:"logs"`
}

// snapshot is the record of a snapshot. It is written after all other files of the snapshot, and
// removed before them.
type snapshot struct {
	Name   string    `json:"name"`
	Taken  time.Time `json:"taken"`
	Memory bool      `json:"memory"`
	Size   int64     `json:"size"`
	// Version and Accelerator are those of the QEMU that has saved the snapshot. They are set only
	// for a snapshot with memory.
	Version     string `json:"version"`
	Accelerator string `json:"accelerator"`
	// Passt is that of the run in which the memory was saved: only the same network can load it.
	Passt bool `json:"passt"`
}

// maxRecord bounds a record in bytes.
const maxRecord = 64 << 10

// readRecord decodes a small JSON file.
func readRecord(path string, record any) error {
	content, err := readSmall(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, record); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func writeRecord(path string, record any) error {
	content, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return localfile.Replace(path, append(content, '\n'))
}

// readSmall returns a file's content, at most maxRecord bytes of it.
func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxRecord))
}

// readPID returns the number in a file; 0 if there is no file, or no number in it.
func readPID(path string) (int, error) {
	content, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid < 0 {
		return 0, nil //nolint:nilerr // a file that was being written
	}
	return pid, nil
}

// lastLines returns the last lines of a log in one line, for an error; "" if the log cannot be
// read.
func lastLines(path string) string {
	const most, lines = 2048, 4
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	content, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "; ")
}

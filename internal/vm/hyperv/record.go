package hyperv

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
)

// maxRecord bounds a record in bytes.
const maxRecord = 1 << 20

// record has the facts that the driver itself stores about a VM.
type record struct {
	ID string `json:"id"` // Hyper-V's ID of the VM
	// Since is when swdt started the VM. Hyper-V reports only how many seconds ago the VM was
	// started.
	Since time.Time `json:"since"`
	// Memory lists the IDs of the snapshots that swdt has saved while the VM ran.
	Memory []string `json:"memory"`
}

func recordPath(m vm.Machine) string { return filepath.Join(m.Folder, "hyperv.json") }

func readRecord(m vm.Machine) (r record, err error) {
	file, err := os.Open(recordPath(m))
	if err != nil {
		return r, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil {
		err = checkID(r.ID)
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", recordPath(m), err)
	}
	return r, nil
}

func writeRecord(m vm.Machine, r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return localfile.Replace(recordPath(m), append(text, '\n'))
}

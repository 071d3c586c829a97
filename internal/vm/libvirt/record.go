package libvirt

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
)

// maxRecord bounds a record in bytes.
const maxRecord = 64 << 10

// record has the facts that the driver itself stores about an adopted domain.
type record struct {
	Domain string `json:"domain"`
	UUID   string `json:"uuid"`
	// Boot, ID and Since describe the last start of the domain by swdt: the boot of your machine,
	// libvirt's ID of the running domain, and the time of the start.
	Boot  string    `json:"boot"`
	ID    int32     `json:"id"`
	Since time.Time `json:"since"`
	// CrashSeen is set if Stop or Kill was called on the crashed domain.
	CrashSeen bool `json:"crashSeen"`
}

func recordPath(m vm.Machine) string { return filepath.Join(m.Folder, "libvirt.json") }

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
	if err == nil && r.UUID != m.UUID {
		err = fmt.Errorf("it is of domain %.60q", r.UUID)
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w; `swdt vm delete` and `swdt vm create` adopt the domain anew", recordPath(m), err)
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

// begun returns the record of a domain that was just started.
func (r record) begun(id int32) record {
	r.Boot, r.ID, r.Since, r.CrashSeen = process.BootID(), id, time.Now(), false
	return r
}

// since returns when the running domain with this ID was started; zero if swdt did not start it.
func (r record) since(id int32) time.Time {
	if r.ID != id || r.Boot != process.BootID() {
		return time.Time{}
	}
	return r.Since
}

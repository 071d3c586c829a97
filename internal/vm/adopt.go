package vm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// ErrAdopted is returned for a VM that another node of yours has adopted.
var ErrAdopted = errors.New("another node has adopted the VM")

// adopt completes the record of a VM that exists already, if the driver is an [Adopter]; for other
// drivers it does nothing. The error is ErrAdopted if another node has adopted the same VM.
func (s *Machines) adopt(ctx context.Context, driver Driver, record *Record) error {
	adopter, ok := driver.(Adopter)
	if !ok {
		return nil
	}
	m, err := adopter.Adopt(ctx, record.Machine)
	if err != nil {
		return fmt.Errorf("adopt %s: %w", record.Machine.adopted(), err)
	}
	record.Machine = m
	others, err := s.store.All()
	if err != nil {
		return err
	}
	same := func(f Found) bool {
		return f.Err == nil && f.Record.Name != m.Name && f.Record.Driver == m.Driver && f.Record.UUID == m.UUID
	}
	if i := slices.IndexFunc(others, same); i >= 0 {
		return fmt.Errorf("adopt %s: %w: it is VM %s; %s releases it, and its domain stays",
			m.adopted(), ErrAdopted, others[i].Record.Name, remedy.Command("vm", "delete", "-n", others[i].Record.Name))
	}
	return nil
}

// adopted returns words for an adopted VM, such as "domain win of qemu:///system"; "" for a VM that
// swdt made.
func (m Machine) adopted() string {
	if m.Domain == "" {
		return ""
	}
	return fmt.Sprintf("domain %s of %s", m.Domain, m.URI)
}

// Adopted returns those of the given names that belong to VMs that swdt has adopted. Delete only
// forgets such a VM.
func (s *Machines) Adopted(names ...string) (adopted []string) {
	for _, name := range names {
		if record, err := s.store.Get(name); err == nil && record.adopted() != "" {
			adopted = append(adopted, name)
		}
	}
	return adopted
}

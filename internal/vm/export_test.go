package vm

import (
	"context"

	"github.com/swdt-dev/swdt/internal/ui"
)

// AwaitFirstStart is the part of Await that follows once the SSH server has answered.
func (s *Machines) AwaitFirstStart(ctx context.Context, name string) error {
	return s.awaitFirstStart(ctx, name, ui.Discard{})
}

// ExpectFirstStart makes a VM one whose script of the first start may run.
func (s *Machines) ExpectFirstStart(name string) error {
	record, err := s.store.Get(name)
	if err != nil {
		return err
	}
	record.FirstStart = true
	return writeRecord(record.Folder, record)
}

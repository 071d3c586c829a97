package simulatedvm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
)

// snapshot is a snapshot with the disk's content.
type snapshot struct {
	vm.Snapshot
	Disk []byte `json:"disk"`
}

// memorySize is the size in bytes of a running VM's imagined memory in a snapshot.
const memorySize = 1 << 20

var errNoName = errors.New("a snapshot needs a name")

func (d *Driver) Save(ctx context.Context, m vm.Machine, name string) error {
	return d.change(ctx, "save", m, func(s *state) error {
		switch {
		case name == "":
			return errNoName
		case s.find(name) >= 0:
			return vm.ErrSnapshotExists
		}
		disk, err := os.ReadFile(filepath.Join(m.Folder, diskFile))
		if err != nil {
			return err
		}
		saved := vm.Snapshot{Name: name, Taken: time.Now(), Memory: executes(*s), Size: int64(len(disk))}
		if saved.Memory {
			saved.Size += memorySize
		}
		s.Snapshots = append(s.Snapshots, snapshot{saved, disk})
		return nil
	})
}

func (d *Driver) Restore(ctx context.Context, m vm.Machine, name string) error {
	return absentAsNoSnapshot(d.change(ctx, "restore", m, func(s *state) error {
		i := s.find(name)
		if i < 0 {
			return vm.ErrNoSnapshot
		}
		if err := localfile.Replace(filepath.Join(m.Folder, diskFile), s.Snapshots[i].Disk); err != nil {
			return err
		}
		if !s.Snapshots[i].Memory {
			return s.end()
		}
		if !executes(*s) {
			s.State, s.Since = vm.Running, time.Now()
		}
		return nil
	}))
}

func (d *Driver) Snapshots(_ context.Context, m vm.Machine) (all []vm.Snapshot, err error) {
	s, err := read(m)
	if errors.Is(err, vm.ErrAbsent) {
		return nil, nil
	}
	for _, saved := range s.Snapshots {
		all = append(all, saved.Snapshot)
	}
	return all, err
}

func (d *Driver) RemoveSnapshot(ctx context.Context, m vm.Machine, name string) error {
	return absentAsNoSnapshot(d.change(ctx, "remove", m, func(s *state) error {
		i := s.find(name)
		if i < 0 {
			return vm.ErrNoSnapshot
		}
		s.Snapshots = slices.Delete(s.Snapshots, i, i+1)
		return nil
	}))
}

func absentAsNoSnapshot(err error) error {
	if errors.Is(err, vm.ErrAbsent) {
		return vm.ErrNoSnapshot
	}
	return err
}

// find returns the index of a snapshot, or -1.
func (s *state) find(name string) int {
	return slices.IndexFunc(s.Snapshots, func(saved snapshot) bool { return saved.Name == name })
}

package simulatedvm

import (
	"context"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/vm"
)

var _ vm.Exporter = (*Driver)(nil)

// Room returns the size of the disk's file.
func (d *Driver) Room(_ context.Context, m vm.Machine, _ vm.DiskFormat) (int64, error) {
	info, err := os.Stat(filepath.Join(m.Folder, diskFile))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Export writes the content of the disk to a file. The operation for Driver.Fault is "export".
func (d *Driver) Export(
	ctx context.Context, m vm.Machine, file string, _ vm.DiskFormat, done func(fraction float64),
) error {
	if err := d.begin(ctx, "export", m); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(m.Folder, diskFile))
	if err != nil {
		return err
	}
	done(1)
	return os.WriteFile(file, text, 0o600)
}

package media

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Limits of the drivers for one version of Windows. The drivers on virtio-win for one version have
// about 100 files with 30 MB.
const (
	maxDriverFiles = 4096
	maxDriverBytes = 256 << 20
)

// driverArchitecture is the name of the folders with drivers for amd64.
const driverArchitecture = "amd64"

// DriverChoice lists the drivers of an ISO for one version of Windows.
type DriverChoice struct {
	Version string   `json:"version"` // the name of the folders: 2k19, 2k22, 2k25, w10, w11 and others
	Drivers []string `json:"drivers"` // such as NetKVM and viostor, sorted
}

// DriverFolder is a folder with one driver for one version of Windows.
type DriverFolder struct {
	Driver string       // such as NetKVM
	Path   string       // such as NetKVM/2k22/amd64
	Files  []DriverFile // the files of the folder and of its subfolders, sorted by path
}

// DriverFile is a file of a driver.
type DriverFile struct {
	Path  string // path below the driver's folder, such as netkvm.inf
	Bytes int64
}

// DriverError reports that an ISO has no drivers for a version of Windows.
type DriverError struct {
	Version  string
	Versions []string // the versions that the ISO has drivers for
}

func (e *DriverError) Error() string {
	if len(e.Versions) == 0 {
		return "the ISO has no virtio drivers (DRIVER/VERSION/amd64); use the ISO of virtio-win"
	}
	return fmt.Sprintf("the ISO has no virtio drivers for %q, only for %s; use a newer ISO of virtio-win",
		e.Version, strings.Join(e.Versions, ", "))
}

// Drivers returns the folders with drivers for a version of Windows, sorted by driver. version is
// the name that virtio-win uses, such as 2k19, 2k22, 2k25, w10 or w11; its case does not matter. If
// there are no drivers for the version, the error is a *DriverError. Files with the returned names
// can be made on any system.
func Drivers(fsys fs.FS, version string) ([]DriverFolder, error) {
	tree, err := driverTree(fsys)
	if err != nil {
		return nil, err
	}
	known := slices.Sorted(maps.Keys(tree))
	i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, version) })
	if i < 0 {
		return nil, &DriverError{Version: version, Versions: known}
	}
	version = known[i]
	var folders []DriverFolder
	budget := driverBudget{files: maxDriverFiles, bytes: maxDriverBytes}
	for _, name := range tree[version] {
		folder, err := budget.folder(fsys, name, path.Join(name, version, driverArchitecture))
		if err != nil {
			return nil, err
		}
		if len(folder.Files) > 0 {
			folders = append(folders, folder)
		}
	}
	if len(folders) == 0 {
		return nil, &DriverError{Version: version, Versions: slices.Delete(known, i, i+1)}
	}
	return folders, nil
}

// driverChoices returns the drivers of an ISO by version, sorted.
func driverChoices(fsys fs.FS) ([]DriverChoice, error) {
	tree, err := driverTree(fsys)
	if err != nil {
		return nil, err
	}
	choices := []DriverChoice{}
	for _, version := range slices.Sorted(maps.Keys(tree)) {
		choices = append(choices, DriverChoice{Version: version, Drivers: tree[version]})
	}
	return choices, nil
}

// driverTree finds the folders DRIVER/VERSION/amd64. It returns the drivers of each version,
// sorted.
func driverTree(fsys fs.FS) (map[string][]string, error) {
	tree := map[string][]string{}
	drivers, err := folders(fsys, ".")
	if err != nil {
		return nil, err
	}
	for _, driver := range drivers {
		versions, err := folders(fsys, driver)
		if err != nil {
			return nil, err
		}
		for _, version := range versions {
			found, err := fs.Stat(fsys, path.Join(driver, version, driverArchitecture))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if found.IsDir() {
				tree[version] = append(tree[version], driver)
			}
		}
	}
	return tree, nil
}

// folders returns the names of the folders in a folder, sorted.
func folders(fsys fs.FS, name string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// driverBudget is the number of files and bytes that the drivers may still have.
type driverBudget struct {
	files int
	bytes int64
}

// folder lists the files of a driver, and subtracts them from the budget. If the folder has no .inf
// file, it holds no driver, and the list of files is empty.
func (b *driverBudget) folder(fsys fs.FS, driver, root string) (DriverFolder, error) {
	folder := DriverFolder{Driver: driver, Path: root}
	installable := false
	err := fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found, err := entry.Info()
		if err != nil {
			return err
		}
		if problem := unportable(name); problem != "" {
			return fmt.Errorf("the driver file %q cannot be copied: %s; use the ISO of virtio-win as it is published",
				name, problem)
		}
		b.files, b.bytes = b.files-1, b.bytes-found.Size()
		if b.files < 0 || b.bytes < 0 {
			return fmt.Errorf("the drivers have more than %d files or %s; use the ISO of virtio-win as it is published",
				maxDriverFiles, ui.Size(maxDriverBytes))
		}
		installable = installable || strings.EqualFold(path.Ext(name), ".inf")
		folder.Files = append(folder.Files, DriverFile{Path: strings.TrimPrefix(name, root+"/"), Bytes: found.Size()})
		return nil
	})
	if !installable {
		folder.Files = nil
	}
	return folder, err
}

// unportable returns the reason why a path cannot be made on Windows, or "". Some of these paths,
// such as C:x and NUL, would lead to another place on Windows.
func unportable(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		stem, _, _ := strings.Cut(strings.ToUpper(part), ".")
		switch {
		case part == "" || part == "." || part == ".." || strings.ContainsAny(part, `<>:"\|?*`):
			return "Windows forbids a character of its name"
		case strings.TrimRight(part, " .") != part:
			return "its name ends in a space or a dot"
		case slices.Contains(deviceNames(), strings.TrimRight(stem, " ")):
			return "its name is reserved for a device"
		}
	}
	return ""
}

// deviceNames returns the names that Windows reserves for devices, whatever extension follows.
func deviceNames() []string {
	names := []string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}
	for _, digit := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"} {
		names = append(names, "COM"+digit, "LPT"+digit)
	}
	return names
}

package custody

import (
	"errors"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// files wraps the machine's files. Before each use of a file below the root, it judges the file and
// the folders above it. Remove and ACL judge only the folders.
type files struct{ all platform.Files }

// whole returns an error unless the path and every folder above it, up to the root, are swdt's.
// For a path outside the root it returns nil.
func (f files) whole(path string) error { return f.judgeEach(below(path)) }

// parents judges the folders above a path, up to the root.
func (f files) parents(path string) error {
	chain := below(path)
	return f.judgeEach(chain[:max(0, len(chain)-1)])
}

func (f files) judgeEach(chain []string) error {
	for _, path := range chain {
		if err := checkOwner(f.all, path); err != nil {
			return err
		}
	}
	return nil
}

// place prepares the creation of path: it makes the root if necessary, and judges the folders above
// path. The result `inside` is false for a path outside the root.
func (f files) place(path string) (inside bool, err error) {
	chain := below(path)
	if chain == nil {
		return false, nil
	}
	if _, err := Secure(f.all); err != nil {
		return true, err
	}
	return true, f.judgeEach(chain[1:max(1, len(chain)-1)])
}

func (f files) Stat(path string) (platform.FileInfo, error) {
	if err := f.whole(path); err != nil {
		return platform.FileInfo{}, err
	}
	return f.all.Stat(path)
}

func (f files) List(path string) ([]platform.FileInfo, error) {
	if err := f.whole(path); err != nil {
		return nil, err
	}
	return f.all.List(path)
}

func (f files) Open(path string) (io.ReadSeekCloser, error) {
	if err := f.whole(path); err != nil {
		return nil, err
	}
	return f.all.Open(path)
}

func (f files) Create(path string, mode platform.CreateMode) (platform.WriteFile, error) {
	inside, err := f.place(path)
	if err != nil {
		return nil, err
	}
	if inside {
		if made, err := f.createNew(path); made != nil || err != nil && !errors.Is(err, fault.ErrExist) {
			return made, err
		}
	}
	return f.all.Create(path, mode)
}

// createNew creates a restricted file. If the file exists already, createNew returns fault.ErrExist
// if the file is swdt's, and a *ForeignError if it is not.
func (f files) createNew(path string) (platform.WriteFile, error) {
	err := checkOwner(f.all, path)
	if errors.Is(err, fault.ErrNotExist) {
		made, err := f.all.NewFile(path, access.SafeFile)
		if !errors.Is(err, fault.ErrExist) {
			return made, err
		}
		if err := checkOwner(f.all, path); err != nil { // another swdt created the file first
			return nil, err
		}
		return nil, fault.ErrExist
	}
	if err != nil {
		return nil, err
	}
	return nil, fault.ErrExist
}

func (f files) NewFolder(path, sddl string) error {
	inside, err := f.place(path)
	if err != nil {
		return err
	}
	if inside && sddl == "" {
		sddl = access.SafeFolder
	}
	return f.all.NewFolder(path, sddl)
}

func (f files) NewFile(path, sddl string) (platform.WriteFile, error) {
	inside, err := f.place(path)
	if err != nil {
		return nil, err
	}
	if inside && sddl == "" {
		sddl = access.SafeFile
	}
	return f.all.NewFile(path, sddl)
}

func (f files) MakeFolder(path string) error {
	chain := below(path)
	if chain == nil {
		return f.all.MakeFolder(path)
	}
	if _, err := Secure(f.all); err != nil {
		return err
	}
	for _, folder := range chain[1:] {
		err := checkOwner(f.all, folder)
		if errors.Is(err, fault.ErrNotExist) {
			if err = f.all.NewFolder(folder, access.SafeFolder); errors.Is(err, fault.ErrExist) {
				err = checkOwner(f.all, folder)
			}
		}
		if err != nil {
			return err
		}
	}
	return f.all.MakeFolder(path) // returns an error if the existing entry is a file
}

func (f files) Rename(from, to string, replace bool) error {
	if err := f.whole(from); err != nil {
		return err
	}
	if _, err := f.place(to); err != nil {
		return err
	}
	return f.all.Rename(from, to, replace)
}

func (f files) Remove(path string) error {
	if err := f.parents(path); err != nil {
		return err
	}
	return f.all.Remove(path)
}

func (f files) SetModified(path string, t time.Time) error {
	if err := f.whole(path); err != nil {
		return err
	}
	return f.all.SetModified(path, t)
}

func (f files) ACL(path string) (string, error) {
	if err := f.parents(path); err != nil {
		return "", err
	}
	return f.all.ACL(path)
}

func (f files) SetACL(path, sddl string) error {
	if err := f.whole(path); err != nil {
		return err
	}
	return f.all.SetACL(path, sddl)
}

func (f files) CheckHeld(path string) error { return f.all.CheckHeld(path) }

func (f files) Holders(path string) ([]platform.Holder, error) { return f.all.Holders(path) }

func (f files) KeepsACL() bool { return f.all.KeepsACL() }

func (f files) FreeBytes(path string) (int64, error) { return f.all.FreeBytes(path) }

func (f files) Lock(path string, holder []byte) (platform.Unlocker, error) {
	inside, err := f.place(path)
	if err != nil {
		return nil, err
	}
	if inside {
		made, err := f.createNew(path)
		if made != nil {
			err = errors.Join(err, made.Close())
		}
		if err != nil && !errors.Is(err, fault.ErrExist) {
			return nil, err
		}
	}
	return f.all.Lock(path, holder)
}

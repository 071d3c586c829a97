package custody

import (
	"errors"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/access"
	"github.com/swdt-dev/swdt/internal/host"
)

// files are the machine's, with those below the root in custody.
type files struct{ all host.Files }

// whole judges a path with all above it, up to the root; outside of the root it is nil.
func (f files) whole(path string) error { return f.judgeEach(below(path)) }

// parents judges what is above a path, up to the root.
func (f files) parents(path string) error {
	chain := below(path)
	return f.judgeEach(chain[:max(0, len(chain)-1)])
}

func (f files) judgeEach(chain []string) error {
	for _, path := range chain {
		if err := judge(f.all, path); err != nil {
			return err
		}
	}
	return nil
}

// place prepares for something new at a path: the root is made if need be, and what is
// above it judged. inside is false for a path outside of the root.
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

func (f files) Stat(path string) (host.FileInfo, error) {
	if err := f.whole(path); err != nil {
		return host.FileInfo{}, err
	}
	return f.all.Stat(path)
}

func (f files) List(path string) ([]host.FileInfo, error) {
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

func (f files) Create(path string, mode host.CreateMode) (host.WriteFile, error) {
	inside, err := f.place(path)
	if err != nil {
		return nil, err
	}
	if inside {
		if made, err := f.unlessThere(path); made != nil || err != nil && !errors.Is(err, host.ErrExist) {
			return made, err
		}
	}
	return f.all.Create(path, mode)
}

// unlessThere creates a file, restricted, or judges the one that is there: that is
// ErrExist if it is ours.
func (f files) unlessThere(path string) (host.WriteFile, error) {
	err := judge(f.all, path)
	if errors.Is(err, host.ErrNotExist) {
		made, err := f.all.NewFile(path, access.SafeFile)
		if !errors.Is(err, host.ErrExist) {
			return made, err
		}
		if err := judge(f.all, path); err != nil { // another swdt was faster
			return nil, err
		}
		return nil, host.ErrExist
	}
	if err != nil {
		return nil, err
	}
	return nil, host.ErrExist
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

func (f files) NewFile(path, sddl string) (host.WriteFile, error) {
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
		err := judge(f.all, folder)
		if errors.Is(err, host.ErrNotExist) {
			if err = f.all.NewFolder(folder, access.SafeFolder); errors.Is(err, host.ErrExist) {
				err = judge(f.all, folder)
			}
		}
		if err != nil {
			return err
		}
	}
	return f.all.MakeFolder(path) // what is there may be a file
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

func (f files) KeepsACL() bool { return f.all.KeepsACL() }

func (f files) FreeBytes(path string) (int64, error) { return f.all.FreeBytes(path) }

func (f files) Lock(path string, holder []byte) (host.Unlocker, error) {
	inside, err := f.place(path)
	if err != nil {
		return nil, err
	}
	if inside {
		made, err := f.unlessThere(path)
		if made != nil {
			err = errors.Join(err, made.Close())
		}
		if err != nil && !errors.Is(err, host.ErrExist) {
			return nil, err
		}
	}
	return f.all.Lock(path, holder)
}

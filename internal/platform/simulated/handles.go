package simulated

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// filesView implements platform.Files for one process.
type filesView struct{ p *process }

// look calls the function of Interleave. Then it runs f under the machine's lock; f only reads the
// disk.
func (v filesView) look(kind Kind, path string, f func(d *disk) error) error {
	v.p.interleave(Operation{Kind: kind, Target: path})
	return v.locked(f)
}

func (v filesView) locked(f func(d *disk) error) error {
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	if v.p.gone {
		return ErrKilled
	}
	return f(v.p.m.disk)
}

// Stat needs FILE_READ_ATTRIBUTES to the file or FILE_LIST_DIRECTORY to its folder: NTFS grants the attributes to an
// account that may list the folder ([MS-FSA], "Algorithm for Access Check", which adds FILE_READ_ATTRIBUTES then).
func (v filesView) Stat(path string) (info platform.FileInfo, err error) {
	err = v.look(opStat, path, func(d *disk) error {
		f, err := d.find(path, false)
		if err != nil {
			return fmt.Errorf("stat: %w", err)
		}
		if f.parent == nil || f.parent.granted(v.p.account)&access.ReadData == 0 {
			if err := f.allow(v.p.account, access.ReadAttributes); err != nil {
				return fmt.Errorf("stat: %w", err)
			}
		}
		_, clean, _ := splitPath(path)
		info = f.info(clean)
		return nil
	})
	return info, err
}

func (v filesView) List(path string) (list []platform.FileInfo, err error) {
	err = v.look(opList, path, func(d *disk) error {
		f, err := d.find(path, true)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if !f.folder {
			return fmt.Errorf("list %s: not a folder: %w", path, fault.ErrNotExist)
		}
		if err := f.allow(v.p.account, access.ReadData); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		_, clean, _ := splitPath(path)
		if clean[len(clean)-1] != '\\' {
			clean += `\`
		}
		for _, name := range sortedKeys(f.children) {
			child := f.children[name]
			list = append(list, child.info(clean+child.name))
		}
		return nil
	})
	return list, err
}

func (v filesView) Open(path string) (io.ReadSeekCloser, error) {
	var h *handle
	err := v.look(opOpen, path, func(d *disk) error {
		f, err := d.find(path, true)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if f.folder {
			return fmt.Errorf("open %s: %w", path, fault.ErrIsDirectory)
		}
		if f.exclusive() {
			return fmt.Errorf("open %s: %w", path, fault.ErrInUse)
		}
		if err := v.p.m.blockedFile(f, true); err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		if err := f.allow(v.p.account, access.ReadData); err != nil {
			return fmt.Errorf("open: %w", err)
		}
		h = v.p.open(f, path, false)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return (*readHandle)(h), nil
}

func (v filesView) Create(path string, mode platform.CreateMode) (platform.WriteFile, error) {
	return v.create(path, func(d *disk) (*file, error) { return d.openForWriting(v.p.account, path, mode) })
}

func (v filesView) NewFile(path, sddl string) (platform.WriteFile, error) {
	return v.create(path, func(d *disk) (*file, error) {
		folder, name, err := d.slot(path)
		if err != nil {
			return nil, err
		}
		if f := folder.children[fold(name)]; f != nil && f.deleting {
			return nil, fmt.Errorf("it is being deleted: %w", fault.ErrPermission)
		} else if f != nil {
			return nil, fault.ErrExist
		}
		return d.create(v.p.account, folder, name, false, sddl)
	})
}

func (v filesView) create(path string, open func(*disk) (*file, error)) (platform.WriteFile, error) {
	var h *handle
	err := v.p.do(OpCreate, path, func() error {
		f, err := open(v.p.m.disk)
		if err != nil {
			return fmt.Errorf("create %s: %w", path, err)
		}
		h = v.p.open(f, path, true)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return (*writeHandle)(h), nil
}

// openForWriting finds or makes a file for writing. CreateFile of a program that runs is ERROR_SHARING_VIOLATION, since
// its image section cannot be flushed for writing (MmFlushForWrite; FatCommonCreate in Microsoft's
// Windows-driver-samples, filesys/fastfat/create.c); that of a read-only file is ERROR_ACCESS_DENIED ("CreateFile").
func (d *disk) openForWriting(by *account, path string, mode platform.CreateMode) (*file, error) {
	folder, name, err := d.slot(path)
	if err != nil {
		return nil, err
	}
	f := folder.children[fold(name)]
	if f != nil && f.link != "" {
		if f, err = d.walk(f.link, true, 1); err != nil {
			return nil, err
		}
	}
	if f == nil {
		return d.create(by, folder, name, false, "")
	}
	switch {
	case f.deleting:
		return nil, fmt.Errorf("it is being deleted: %w", fault.ErrPermission)
	case f.folder:
		return nil, fault.ErrIsDirectory
	case mode == platform.CreateNew:
		return nil, fault.ErrExist
	}
	if err := f.allow(by, access.WriteData|access.AppendData); err != nil {
		return nil, err
	}
	switch {
	case f.readOnly:
		return nil, fault.ErrPermission
	case f.running > 0:
		return nil, fmt.Errorf("it is running: %w", fault.ErrInUse)
	case f.writers() > 0 || f.held():
		return nil, fault.ErrInUse
	}
	if err := d.writable(); err != nil {
		return nil, err
	}
	if mode == platform.CreateTruncate {
		d.truncate(f, 0)
	}
	return f, nil
}

func (v filesView) Rename(from, to string, replace bool) error {
	op := Operation{Kind: OpRename, Target: to, From: from}
	return v.p.operate(op, func(Verdict) error {
		return v.locked(func(d *disk) error {
			if err := d.rename(v.p.account, from, to, replace); err != nil {
				return fmt.Errorf("rename %s to %s: %w", from, to, err)
			}
			return nil
		})
	})
}

func (v filesView) Remove(path string) error {
	return v.p.do(OpRemove, path, func() error {
		if err := v.p.m.disk.remove(v.p.account, path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
		return nil
	})
}

func (v filesView) CheckHeld(path string) error {
	return v.look(opStat, path, func(d *disk) error {
		f, err := d.find(path, false)
		if err == nil && (f.lock != nil || f.held()) {
			err = fault.ErrInUse
		}
		if err != nil {
			return fmt.Errorf("ask whether %s can be renamed: %w", path, err)
		}
		return nil
	})
}

// Holders finds processes as the Restart Manager does: those that have the file open, and those that run it. Real names are
// "user-friendly" ones (RM_PROCESS_INFO). That it finds all of them is a guess: docs/guesses.md.
func (v filesView) Holders(path string) (holders []platform.Holder, err error) {
	err = v.look(opStat, path, func(d *disk) error {
		f, err := d.find(path, false)
		if err != nil {
			return fmt.Errorf("find the programs that hold %s: %w", path, err)
		}
		for _, p := range v.p.m.processes {
			if p != v.p && p.holdsOpen(f) {
				holders = append(holders, platform.Holder{PID: p.pid, Name: p.name, Runs: p.file == f})
			}
		}
		slices.SortFunc(holders, func(a, b platform.Holder) int { return cmp.Compare(a.PID, b.PID) })
		return nil
	})
	return holders, err
}

// holdsOpen reports whether the Restart Manager finds the process for a file.
func (p *process) holdsOpen(f *file) bool {
	for h := range p.holds {
		if h.file == f && !h.unnamed {
			return true
		}
	}
	for h := range p.handles {
		if h.file == f {
			return true
		}
	}
	return p.file == f || f.lock != nil && f.lock.p == p
}

func (v filesView) MakeFolder(path string) error {
	return v.p.do(OpFolder, path, func() error {
		if err := v.p.m.disk.makeFolder(v.p.account, path); err != nil {
			return fmt.Errorf("make folder %s: %w", path, err)
		}
		return nil
	})
}

func (v filesView) NewFolder(path, sddl string) error {
	return v.p.do(OpFolder, path, func() error {
		if err := v.p.m.disk.newFolder(v.p.account, path, sddl); err != nil {
			return fmt.Errorf("make folder %s: %w", path, err)
		}
		return nil
	})
}

func (v filesView) KeepsACL() bool { return true }

func (v filesView) SetModified(path string, t time.Time) error {
	return v.p.do(OpModified, path, func() error {
		f, err := v.p.m.disk.find(path, false)
		if err == nil {
			err = v.p.m.disk.writable()
		}
		if err == nil {
			err = f.allow(v.p.account, access.WriteAttributes)
		}
		if err != nil {
			return fmt.Errorf("set the time of %s: %w", path, err)
		}
		f.modified = fileTime(t)
		return nil
	})
}

func (v filesView) ACL(path string) (sddl string, err error) {
	err = v.look(opReadACL, path, func(d *disk) error {
		f, err := d.find(path, false)
		if err == nil && !v.p.account.privileged {
			err = f.allow(v.p.account, access.ReadControl)
		}
		if err != nil {
			return fmt.Errorf("read the access list: %w", err)
		}
		sddl = f.security.String()
		return nil
	})
	return sddl, err
}

func (v filesView) SetACL(path, sddl string) error {
	return v.p.do(OpACL, path, func() error {
		f, err := v.p.m.disk.find(path, false)
		if err == nil {
			err = v.p.m.disk.writable()
		}
		if err == nil {
			err = f.mayChange(v.p.account, sddl)
		}
		if err == nil {
			err = f.setSecurity(v.p.account, sddl)
		}
		if err != nil {
			return fmt.Errorf("set the access list of %s: %w", path, err)
		}
		return nil
	})
}

func (v filesView) FreeBytes(path string) (free int64, err error) {
	err = v.look(opStat, path, func(d *disk) error {
		if _, _, err := splitPath(path); err != nil { // the file at path need not exist yet
			return fmt.Errorf("free space: %w", err)
		}
		free = max(0, d.capacity-d.used)
		return nil
	})
	return free, err
}

// bytes returns a copy of a small file.
func (f *file) bytes() []byte {
	b := make([]byte, f.content.size)
	_, _ = f.content.reader().ReadAt(b, 0)
	return b
}

package simulated

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// SpawnAs is like Spawn, for a process of an ordinary user (User, OtherUser). The process's
// Platform has only Files and Processes. A command that the process runs has the user's rights, too;
// apart from that, Processes does not check the user's rights.
func (m *Machine) SpawnAs(name, sid string) *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.newProcess(name, nil)
	p.account = ordinary(sid)
	return &Process{Platform: &platform.Platform{Files: filesView{p}, Processes: processesView{p}},
		Executable: name, p: p}
}

// Hold is a handle to a file or folder. It keeps the rights that its process had when the handle
// was opened, even if the access list changes later.
type Hold struct {
	p         *process
	file      *file
	rights    access.Rights
	exclusive bool
	// scans is set for a handle of Scan, and unnamed for one of ScanUnnamed.
	scans, unnamed bool
}

// Scan opens a file as virus scanners, backup programs, indexers and WerFault do: other processes may read the file and
// start it, but until the handle is closed, each rename, removal, replacement or opening for writing fails with
// fault.ErrInUse. (CreateFileW: "FILE_SHARE_DELETE: If this flag is not specified, but the file or device has been
// opened for delete access, the function fails"; a rename needs delete access too.)
func (p *Process) Scan(path string) (*Hold, error) {
	h, err := p.Hold(path, access.ReadData, false)
	if err != nil {
		return nil, err
	}
	p.p.m.mu.Lock()
	defer p.p.m.mu.Unlock()
	h.scans = true
	return h, nil
}

// ScanUnnamed is like Scan, for a handle that the Restart Manager does not find: the kernel has it, or a remote machine.
func (p *Process) ScanUnnamed(path string) (*Hold, error) {
	h, err := p.Scan(path)
	if err != nil {
		return nil, err
	}
	p.p.m.mu.Lock()
	defer p.p.m.mu.Unlock()
	h.unnamed = true
	return h, nil
}

// ScanBefore lets the scanner MsMpEng.exe open a file before the first operation for which chosen returns true, and
// close it after a while. path is called then. ScanBefore replaces the function of OnOperation; opened reports whether
// there was such an operation.
func (m *Machine) ScanBefore(chosen func(Operation) bool, path func() string, d time.Duration) (opened func() bool) {
	scanner := m.Spawn("MsMpEng.exe")
	var once sync.Once
	var done atomic.Bool
	m.OnOperation(func(op Operation) Verdict {
		if op.Phase == Before && chosen(op) {
			once.Do(func() {
				if h, err := scanner.Scan(path()); err == nil {
					done.Store(true)
					time.AfterFunc(d, func() { _ = h.Close() })
				}
			})
		}
		return Continue()
	})
	return done.Load
}

// held reports whether a handle denies other processes to rename, remove or write the file.
func (f *file) held() bool {
	for h := range f.holds {
		if h.exclusive || h.scans {
			return true
		}
	}
	return false
}

// Hold opens a file or folder itself, never the target of a link, with these rights. An exclusive
// handle shares nothing: while it is open, no other process can open, rename or remove the file or
// folder.
func (p *Process) Hold(path string, rights access.Rights, exclusive bool) (*Hold, error) {
	p.p.m.mu.Lock()
	defer p.p.m.mu.Unlock()
	if p.p.gone {
		return nil, ErrKilled
	}
	f, err := p.p.m.disk.find(path, false)
	if err != nil {
		return nil, err
	}
	if err := f.allow(p.p.account, rights); err != nil {
		return nil, err
	}
	if f.exclusive() || exclusive && (len(f.handles) > 0 || len(f.holds) > 0) {
		return nil, fmt.Errorf("%s: %w", path, fault.ErrInUse)
	}
	h := &Hold{p: p.p, file: f, rights: rights, exclusive: exclusive}
	f.holds[h] = struct{}{}
	if p.p.holds == nil {
		p.p.holds = map[*Hold]struct{}{}
	}
	p.p.holds[h] = struct{}{}
	return h, nil
}

// exclusive reports whether an exclusive handle denies the file to every other process.
func (f *file) exclusive() bool {
	for h := range f.holds {
		if h.exclusive {
			return true
		}
	}
	return false
}

// use performs an action that needs rights. It fails unless these rights were granted when h was
// opened.
func (h *Hold) use(rights access.Rights, do func(d *disk) error) error {
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	switch _, open := h.file.holds[h]; {
	case !open:
		return fs.ErrClosed
	case h.rights&rights != rights:
		return fault.ErrPermission
	}
	return do(h.p.m.disk)
}

// SetACL sets the access list of the open file or folder.
func (h *Hold) SetACL(sddl string) error {
	return h.use(access.WriteDAC, func(*disk) error { return h.file.setSecurity(h.p.account, sddl) })
}

// Add makes a file with that content in the open folder.
func (h *Hold) Add(name, content string) error {
	return h.use(access.WriteData, func(d *disk) error {
		if !h.file.folder || h.file.children[fold(name)] != nil {
			return fault.ErrExist
		}
		f := d.newFile(name, false)
		f.parent = h.file
		if err := f.create(h.p.account, ""); err != nil {
			return err
		}
		d.add(h.file, f, name)
		_, err := d.write(f, []byte(content))
		return err
	})
}

// Write replaces the content of the open file.
func (h *Hold) Write(content string) error {
	return h.use(access.WriteData, func(d *disk) error {
		if h.file.folder || h.file.running > 0 {
			return fault.ErrPermission
		}
		d.truncate(h.file, 0)
		_, err := d.write(h.file, []byte(content))
		return err
	})
}

// Rename moves the open file or folder to another name in the same folder, or to another folder to
// which the handle's user may add files.
func (h *Hold) Rename(to string) error {
	return h.use(access.Delete, func(d *disk) error {
		folder, name, err := d.slot(to)
		if err != nil {
			return err
		}
		if folder.children[fold(name)] != nil || h.file.parent == nil {
			return fault.ErrExist
		}
		if err := folder.allowAdding(h.p.account, h.file.folder); err != nil {
			return err
		}
		if h.file.busy() {
			return fault.ErrPermission
		}
		d.detach(h.file)
		d.add(folder, h.file, name)
		return nil
	})
}

// Path returns the present path of the open file or folder.
func (h *Hold) Path() string {
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	return h.file.path()
}

// Close releases the handle.
func (h *Hold) Close() error {
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	h.release()
	return nil
}

func (h *Hold) release() {
	delete(h.file.holds, h)
	delete(h.p.holds, h)
}

// Junction creates a folder that redirects to another folder. Every user that may create folders in
// the parent of path can create a junction there.
func (p *Process) Junction(path, target string) error {
	p.p.m.mu.Lock()
	defer p.p.m.mu.Unlock()
	d := p.p.m.disk
	folder, name, err := d.slot(path)
	if err != nil {
		return err
	}
	if folder.children[fold(name)] != nil {
		return fmt.Errorf("%s: %w", path, fault.ErrExist)
	}
	f, err := d.create(p.p.account, folder, name, true, "")
	if err != nil {
		return err
	}
	f.link = strings.TrimRight(target, `\`)
	return nil
}

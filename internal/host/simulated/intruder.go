package simulated

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/swdt-dev/swdt/internal/access"
	"github.com/swdt-dev/swdt/internal/host"
)

// SpawnAs is Spawn for a process of an ordinary user (User, OtherUser). Of its Host
// only Files and Processes.Run are an ordinary user's; the rest is not modelled, and
// left out.
func (m *Machine) SpawnAs(name, sid string) *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.newProcess(name, nil)
	p.account = ordinary(sid)
	return &Process{Host: &host.Host{Files: filesView{p}, Processes: processesView{p}}, Executable: name, p: p}
}

// Hold is a handle that keeps the rights which its process had to a file or folder
// when it was opened, whatever the access list says later.
type Hold struct {
	p         *process
	file      *file
	rights    access.Rights
	exclusive bool
}

// Hold opens a file or folder itself, never what a link points to, with these rights.
// An exclusive one shares nothing: meanwhile no other process can open, rename or
// remove it.
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
	if f.kept() || exclusive && (len(f.handles) > 0 || len(f.holds) > 0) {
		return nil, fmt.Errorf("%s: %w", path, host.ErrInUse)
	}
	h := &Hold{p: p.p, file: f, rights: rights, exclusive: exclusive}
	f.holds[h] = struct{}{}
	if p.p.holds == nil {
		p.p.holds = map[*Hold]struct{}{}
	}
	p.p.holds[h] = struct{}{}
	return h, nil
}

// kept reports whether an exclusive handle keeps every other process from a file.
func (f *file) kept() bool {
	for h := range f.holds {
		if h.exclusive {
			return true
		}
	}
	return false
}

// use does something that takes rights, which were decided when h was opened.
func (h *Hold) use(rights access.Rights, do func(d *disk) error) error {
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	switch _, open := h.file.holds[h]; {
	case !open:
		return fs.ErrClosed
	case h.rights&rights != rights:
		return host.ErrPermission
	}
	return do(h.p.m.disk)
}

// SetACL sets the access list of what h is open on.
func (h *Hold) SetACL(sddl string) error {
	return h.use(access.WriteDAC, func(*disk) error { return h.file.setSecurity(h.p.account, sddl) })
}

// Add makes a file with that content in the folder that h is open on.
func (h *Hold) Add(name, content string) error {
	return h.use(access.WriteData, func(d *disk) error {
		if !h.file.folder || h.file.children[fold(name)] != nil {
			return host.ErrExist
		}
		f := d.newFile(name, false)
		f.parent = h.file
		if err := f.born(h.p.account, ""); err != nil {
			return err
		}
		d.add(h.file, f, name)
		_, err := d.write(f, []byte(content))
		return err
	})
}

// Write replaces the content of the file that h is open on.
func (h *Hold) Write(content string) error {
	return h.use(access.WriteData, func(d *disk) error {
		if h.file.folder || h.file.running > 0 {
			return host.ErrPermission
		}
		d.truncate(h.file, 0)
		_, err := d.write(h.file, []byte(content))
		return err
	})
}

// Rename moves what h is open on to another name in the same or another folder that
// its user may add to.
func (h *Hold) Rename(to string) error {
	return h.use(access.Delete, func(d *disk) error {
		folder, name, err := d.slot(to)
		if err != nil {
			return err
		}
		if folder.children[fold(name)] != nil || h.file.parent == nil {
			return host.ErrExist
		}
		if err := folder.allowAdding(h.p.account, h.file.folder); err != nil {
			return err
		}
		if h.file.busy() {
			return host.ErrPermission
		}
		d.detach(h.file)
		d.add(folder, h.file, name)
		return nil
	})
}

// Path is where what h is open on is now.
func (h *Hold) Path() string {
	h.p.m.mu.Lock()
	defer h.p.m.mu.Unlock()
	return h.file.path()
}

// Close gives the handle up.
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

// Junction makes a folder that leads to another one, which every user can do where
// he may make folders.
func (p *Process) Junction(path, target string) error {
	p.p.m.mu.Lock()
	defer p.p.m.mu.Unlock()
	d := p.p.m.disk
	folder, name, err := d.slot(path)
	if err != nil {
		return err
	}
	if folder.children[fold(name)] != nil {
		return fmt.Errorf("%s: %w", path, host.ErrExist)
	}
	f, err := d.create(p.p.account, folder, name, true, "")
	if err != nil {
		return err
	}
	f.link = strings.TrimRight(target, `\`)
	return nil
}

package simulated

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
)

// ReadFile returns a file's content, from outside the machine.
func (m *Machine) ReadFile(path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.disk.find(path, true)
	if err != nil {
		return nil, err
	}
	if f.folder {
		return nil, fmt.Errorf("%s: %w", path, host.ErrIsDirectory)
	}
	return f.bytes(), nil
}

// WriteFile puts a file on the disk, from outside the machine: no lock, fault or
// running program is in its way, and it is synced.
func (m *Machine) WriteFile(path string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putFile(path, data)
}

// Snapshot returns the SHA-256 (hex) of every file below a folder, by its full
// path as spelled on the disk. Folders are not listed.
func (m *Machine) Snapshot(folder string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	files := map[string]string{}
	root, err := m.disk.find(folder, true)
	if err != nil {
		return files
	}
	var down func(f *file)
	down = func(f *file) {
		if !f.folder {
			files[f.path()] = f.content.reader().sha256()
		}
		for _, child := range f.children {
			down(child)
		}
	}
	down(root)
	return files
}

// ServiceStates returns every service's status by lower-case name.
func (m *Machine) ServiceStates() map[string]host.ServiceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := map[string]host.ServiceStatus{}
	for name, s := range m.services {
		states[name] = s.status()
	}
	return states
}

// RunningServices names, sorted, the services that run.
func (m *Machine) RunningServices() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, name := range sortedKeys(m.services) {
		if m.services[name].state == host.Running {
			names = append(names, m.services[name].config.Name)
		}
	}
	return names
}

// ProcessNames lists the processes that live, by PID.
func (m *Machine) ProcessNames() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, pid := range sortedKeys(m.processes) {
		names = append(names, m.processes[pid].name)
	}
	return names
}

// AddService registers a service without asking the SCM's client side.
func (m *Machine) AddService(config host.ServiceConfig) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addService(config)
}

// SetReadOnly sets a file's read-only attribute, SetDiskReadOnly the disk's
// write protection, SetFreeBytes how much can still be written.
func (m *Machine) SetReadOnly(path string, on bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.disk.find(path, false)
	if err == nil {
		f.readOnly = on
	}
	return err
}

func (m *Machine) SetDiskReadOnly(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.readOnly = on
}

func (m *Machine) SetFreeBytes(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.capacity = m.disk.used + n
}

// Link makes a symbolic link at path; its folder must exist.
func (m *Machine) Link(path, target string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	folder, name, err := m.disk.slot(path)
	if err != nil {
		return err
	}
	if folder.children[fold(name)] != nil {
		return fmt.Errorf("link %s: %w", path, host.ErrExist)
	}
	to, err := m.disk.find(target, true)
	f, err := m.disk.create(system(), folder, name, err == nil && to.folder, "")
	if err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	f.link = strings.TrimRight(target, `\`)
	return nil
}

// SetPendingReboot makes servicing wait for a restart, or not.
func (m *Machine) SetPendingReboot(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if on {
		_ = m.registry.set(rebootPendingKey, host.RegistryValue{Type: host.RegistryString})
		return
	}
	if k, err := m.registry.find(servicingKey); err == nil {
		delete(k.keys, fold("RebootPending"))
	}
}

// Broadcasts counts the environment broadcasts so far.
func (m *Machine) Broadcasts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broadcasts
}

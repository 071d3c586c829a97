package simulated

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
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
		return nil, fmt.Errorf("%s: %w", path, fault.ErrIsDirectory)
	}
	return f.bytes(), nil
}

// WriteFile puts a file on the disk, from outside the machine: no lock, fault
// or running program prevents the write, and the content is synced.
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
func (m *Machine) ServiceStates() map[string]platform.ServiceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := map[string]platform.ServiceStatus{}
	for name, s := range m.services {
		states[name] = s.status()
	}
	return states
}

// RunningServices returns the names of the running services, sorted.
func (m *Machine) RunningServices() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, name := range sortedKeys(m.services) {
		if m.services[name].state == platform.Running {
			names = append(names, m.services[name].config.Name)
		}
	}
	return names
}

// ProcessNames returns the names of the running processes, sorted by PID.
func (m *Machine) ProcessNames() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, pid := range sortedKeys(m.processes) {
		names = append(names, m.processes[pid].name)
	}
	return names
}

// AddService registers a service directly, without an operation.
func (m *Machine) AddService(config platform.ServiceConfig) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addService(config)
}

// SetReadOnly sets or clears a file's read-only attribute. SetDiskReadOnly sets or clears the
// disk's write protection. SetFreeBytes sets how many bytes can still be written.
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
		return fmt.Errorf("link %s: %w", path, fault.ErrExist)
	}
	to, err := m.disk.find(target, true)
	f, err := m.disk.create(system(), folder, name, err == nil && to.folder, "")
	if err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	f.link = strings.TrimRight(target, `\`)
	return nil
}

// SetPendingReboot sets or removes the registry key by which Windows' servicing shows that it waits
// for a restart.
func (m *Machine) SetPendingReboot(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if on {
		_ = m.registry.set(rebootPendingKey, platform.RegistryValue{Type: platform.RegistryString})
		return
	}
	if k, err := m.registry.find(servicingKey); err == nil {
		delete(k.keys, fold("RebootPending"))
	}
}

// Broadcasts returns the number of environment broadcasts so far.
func (m *Machine) Broadcasts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broadcasts
}

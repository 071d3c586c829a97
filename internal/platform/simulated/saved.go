package simulated

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
)

// savedVersion must be increased when a change of the type saved makes older code misread a newer
// state.
const savedVersion = 1

// saved is the state that a machine keeps while it is off, for encoding/gob. Names of DNS,
// reachable addresses, hooks and scripts are outside the machine, and are not kept.
type saved struct {
	Version  int
	Hostname string
	Preset   Preset
	Boots    int
	Disk     savedFile
	Registry savedKey
	Services []savedService
	Features map[string]platform.FeatureState
	Firewall []platform.FirewallRule
	Packages map[string]string // versions of Chocolatey's packages, by name
	Events   []LoggedEvent
	Images   []criserver.Image // the images that containerd has pulled
}

type savedFile struct {
	Name              string
	Index             uint64
	Folder, ReadOnly  bool
	Link              string
	Modified, Created time.Time
	Security          access.List
	Size              int64
	Chunks            [][]byte
	Children          []savedFile
}

type savedKey struct {
	Name   string
	Values []platform.RegistryValue
	Keys   []savedKey
}

type savedService struct {
	Config platform.ServiceConfig
	Shared bool
}

// Save writes the state that a machine keeps on its disk: files, registry, services, features,
// firewall, installed packages, event logs and pulled images. Options.Saved reads this state.
// Processes are not saved. The machine may be up during Save, and waits only while the state is
// collected.
func (m *Machine) Save(w io.Writer) error {
	m.mu.Lock()
	s := m.save()
	m.mu.Unlock()
	if err := gob.NewEncoder(w).Encode(s); err != nil {
		return fmt.Errorf("save the state of machine %s: %w", s.Hostname, err)
	}
	return nil
}

func (m *Machine) save() *saved {
	m.writeServiceKeys() // so that the state does not depend on who has read the registry
	s := &saved{
		Version: savedVersion, Hostname: m.options.Hostname, Preset: m.options.Preset, Boots: m.boots,
		Disk: m.disk.root.save(), Registry: m.registry.save(),
		Features: map[string]platform.FeatureState{},
		Firewall: append([]platform.FirewallRule(nil), m.firewall...),
		Packages: maps.Clone(m.choco.installed),
		Events:   append([]LoggedEvent(nil), m.events...), Images: m.pulled.Images(),
	}
	for _, name := range sortedKeys(m.services) {
		if service := m.services[name]; !service.deleting {
			s.Services = append(s.Services, savedService{cloneConfig(service.config), service.shared})
		}
	}
	for name, feature := range m.features {
		s.Features[name] = feature.state
	}
	return s
}

// save copies the tree below f. The bytes of chunks are shared, since they never change.
func (f *file) save() savedFile {
	s := savedFile{
		Name: f.name, Index: f.index, Folder: f.folder, ReadOnly: f.readOnly, Link: f.link,
		Modified: f.modified, Created: f.created, Security: f.security,
		Size: f.content.size, Chunks: f.content.reader().chunks,
	}
	s.Security.Entries = append([]access.Entry(nil), f.security.Entries...)
	for _, name := range sortedKeys(f.children) {
		s.Children = append(s.Children, f.children[name].save())
	}
	return s
}

func (k *registryKey) save() savedKey {
	s := savedKey{Name: k.name}
	for _, name := range sortedKeys(k.values) {
		s.Values = append(s.Values, normalise(k.values[name]))
	}
	for _, name := range sortedKeys(k.keys) {
		s.Keys = append(s.Keys, k.keys[name].save())
	}
	return s
}

// Saved is the state of a machine that Save has written.
type Saved struct{ state *saved }

// ReadSaved reads the state that Save wrote.
func ReadSaved(r io.Reader) (*Saved, error) {
	s := &saved{}
	if err := gob.NewDecoder(r).Decode(s); err != nil {
		return nil, fmt.Errorf("read the state of a simulated machine: %w", err)
	}
	if s.Version != savedVersion {
		return nil, fmt.Errorf("read the state of a simulated machine: its version is %d, not %d; delete the state",
			s.Version, savedVersion)
	}
	if !s.Disk.Folder {
		return nil, errors.New("read the state of a simulated machine: its disk has no folder; delete the state")
	}
	if err := s.Disk.check(); err != nil {
		return nil, err
	}
	return &Saved{s}, nil
}

// check returns an error if a file's bytes contradict its size, or if a file that is not a folder
// has files below it.
func (f savedFile) check() error {
	size := int64(0)
	for _, chunk := range f.Chunks {
		size += int64(len(chunk))
	}
	if size != f.Size || (len(f.Children) > 0 && !f.Folder) {
		return fmt.Errorf("read the state of a simulated machine: the entry of file %s is inconsistent; delete the state", f.Name)
	}
	for _, child := range f.Children {
		if err := child.check(); err != nil {
			return err
		}
	}
	return nil
}

// restore replaces the preset's state, before the machine's first boot.
func (m *Machine) restore(s *saved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boots = s.Boots
	m.disk = &disk{capacity: m.options.Disk}
	m.disk.root = m.disk.restore(s.Disk)
	m.registry = restoreKey(s.Registry)
	m.services = map[string]*service{}
	for _, one := range s.Services {
		m.addService(one.Config).shared = one.Shared
	}
	for name, state := range s.Features {
		if feature := m.features[name]; feature != nil {
			feature.state = state
		}
	}
	m.firewall = s.Firewall
	maps.Copy(m.choco.installed, s.Packages)
	m.events = nil
	for _, e := range s.Events {
		m.logEvent(e)
	}
	for _, image := range s.Images {
		m.pulled.Add(image)
	}
}

// restore returns the file with everything below it.
func (d *disk) restore(s savedFile) *file {
	f := d.newFile(s.Name, s.Folder)
	f.readOnly, f.link, f.modified, f.created, f.security = s.ReadOnly, s.Link, s.Modified, s.Created, s.Security
	for _, chunk := range s.Chunks {
		f.content.append(chunk)
	}
	f.synced = f.content.size
	d.used += f.content.size
	for _, one := range s.Children {
		child := d.restore(one)
		child.parent = f
		f.children[fold(child.name)] = child
	}
	// The identity of a file outlives a restart.
	f.index = s.Index
	d.lastIndex = max(d.lastIndex, s.Index)
	return f
}

func restoreKey(s savedKey) *registryKey {
	k := newRegistryKey(s.Name)
	for _, value := range s.Values {
		k.values[fold(value.Name)] = normalise(value)
	}
	for _, one := range s.Keys {
		k.keys[fold(one.Name)] = restoreKey(one)
	}
	return k
}

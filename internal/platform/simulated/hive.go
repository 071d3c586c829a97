package simulated

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
)

// lazyFlush is how long a change of the services' registrations is only in memory. Windows keeps them in the registry
// and writes that to the disk "using its lazy flusher […] after a system-specified interval of time" (RegFlushKey, whose
// caller does not have to wait for that). That RegFlushKey covers the SCM's own changes is a guess: docs/guesses.md. File
// names are on the disk at once, since callers rename with MOVEFILE_WRITE_THROUGH.
const lazyFlush = time.Minute

// hive is the state of the services' registrations on the disk. It is guarded by the machine's lock.
type hive struct {
	services map[string]registration // by folded name
	changed  time.Time               // the last change; the zero time: everything is on the disk
}

type registration struct {
	config platform.ServiceConfig
	shared bool
}

// flush writes all registrations to the disk; the caller holds the lock.
func (m *Machine) flush() {
	m.hive = hive{services: map[string]registration{}}
	for name, s := range m.services {
		if !s.deleting {
			m.hive.services[name] = registration{cloneConfig(s.config), s.shared}
		}
	}
}

// beforeChange must be called before a change of a registration. The caller holds the lock.
func (m *Machine) beforeChange() {
	if time.Since(m.hive.changed) > lazyFlush {
		m.flush()
	}
	m.hive.changed = time.Now()
}

// loseChanges restores the registrations that are on the disk; the caller holds the lock.
func (m *Machine) loseChanges() {
	if time.Since(m.hive.changed) > lazyFlush {
		return
	}
	for name := range m.services {
		if _, kept := m.hive.services[name]; !kept {
			delete(m.services, name)
		}
	}
	for name, kept := range m.hive.services {
		s := m.services[name]
		if s == nil {
			s = m.addService(kept.config)
		}
		s.config, s.shared, s.deleting = cloneConfig(kept.config), kept.shared, false
	}
}

func (v servicesView) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.do(OpServiceFlush, "", func() error {
		v.p.m.flush()
		return nil
	})
}

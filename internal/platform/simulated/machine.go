package simulated

import (
	"context"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// The keys have the version of Windows, the number of its boot (kubernetes v1.36.3, pkg/kubelet/winstats, reads it there),
// the environment of all processes ("Environment Variables"), and the changes that wait for a restart (see noteReboot).
const (
	currentVersionKey = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	prefetchKey       = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`
	environmentKey    = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`
	servicingKey      = `HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing`
	rebootPendingKey  = servicingKey + `\RebootPending`
)

// machineView implements platform.Machine for one process.
type machineView struct{ p *process }

func (v machineView) Facts(ctx context.Context) (platform.Facts, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return platform.Facts{}, err
	}
	m := v.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boot == nil {
		return platform.Facts{}, ErrKilled
	}
	text := func(name string) string {
		k, err := m.registry.find(currentVersionKey)
		if err != nil {
			return ""
		}
		return k.values[fold(name)].String
	}
	ubr := uint64(0)
	if k, err := m.registry.find(currentVersionKey); err == nil {
		ubr = k.values["ubr"].Integer
	}
	facts := platform.Facts{
		Hostname:      m.options.Hostname,
		Product:       text("ProductName"),
		Build:         fmt.Sprintf("%s.%d", text("CurrentBuildNumber"), ubr),
		Architecture:  m.options.Architecture,
		BootID:        m.boot.id,
		Uptime:        time.Since(m.boot.started),
		CPUs:          4,
		Memory:        16 << 30,
		MemoryFree:    11 << 30,
		SystemDrive:   systemDrive,
		DiskFree:      uint64(max(0, m.disk.capacity-m.disk.used)),
		PendingReboot: m.pendingReboot(),
		Elevated:      true,
		Simulated:     "simulated",
		Time:          time.Now(),

		Virtualization: true,
	}
	if m.alterFacts != nil {
		m.alterFacts(&facts)
	}
	return facts, nil
}

func (m *Machine) pendingReboot() []string {
	var reasons []string
	if _, err := m.registry.find(rebootPendingKey); err == nil {
		reasons = append(reasons, "Component Based Servicing")
	}
	return reasons
}

// Reboot requests a restart. The machine restarts after Options.RebootDelay.
func (v machineView) Reboot(ctx context.Context, reason string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := v.p.m
	return v.p.do(OpReboot, reason, func() error {
		current := m.boot
		m.later(m.options.RebootDelay, current.ctx, func() { m.restart(current, false) })
		return nil
	})
}

// shutDown switches the machine off after Options.RebootDelay.
func (p *process) shutDown(reason string) error {
	m := p.m
	return p.do(OpReboot, reason, func() error {
		current := m.boot
		m.later(m.options.RebootDelay, current.ctx, func() { m.switchOff(current) })
		return nil
	})
}

// switchOff ends the boot `current` in an orderly way. It does nothing if that boot has ended
// already.
func (m *Machine) switchOff(current *boot) {
	if !m.endServices(current) {
		return
	}
	m.mu.Lock()
	if m.closed || m.boot != current {
		m.mu.Unlock()
		return
	}
	m.powerOff()
	m.disk.syncAll()
	m.flush()
	m.mu.Unlock()
	if m.options.OnShutdown != nil {
		m.options.OnShutdown()
	}
}

func (v machineView) BroadcastEnvironment(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.do(OpBroadcast, "Environment", func() error {
		v.p.m.broadcasts++
		return nil
	})
}

// later runs f after d, unless ctx ends before.
func (m *Machine) later(d time.Duration, ctx context.Context, f func()) {
	m.spawn(func() {
		if wait.For(ctx, d) == nil {
			f()
		}
	})
}

// Reboot restarts the machine in an orderly way. It returns when the machine is
// off; AwaitUp waits until the machine is up again.
func (m *Machine) Reboot() { m.reset(false) }

// PowerCut restarts the machine as a reset does: every process ends
// immediately, and file content that was not synced is lost. Like Reboot, it
// returns when the machine is off.
func (m *Machine) PowerCut() { m.reset(true) }

func (m *Machine) reset(cut bool) {
	m.mu.Lock()
	current := m.boot
	m.mu.Unlock()
	if current != nil {
		m.restart(current, cut)
	}
}

// restart ends the boot `current` and begins the next. It does nothing if that boot has ended
// already.
func (m *Machine) restart(current *boot, cut bool) {
	if !cut && !m.endServices(current) {
		return
	}
	m.mu.Lock()
	if m.closed || m.boot != current {
		m.mu.Unlock()
		return
	}
	m.powerOff()
	if cut {
		m.disk.dropUnsynced()
		m.loseChanges()
	} else {
		m.disk.syncAll()
		m.flush()
	}
	m.mu.Unlock()
	if m.options.OnRestart != nil && !cut {
		m.options.OnRestart()
		return
	}
	m.spawn(func() {
		_ = wait.For(context.Background(), m.options.BootDelay)
		m.start(false)
	})
}

// powerOff ends everything that runs; the caller holds the lock.
func (m *Machine) powerOff() {
	if m.boot == nil {
		return
	}
	m.options.Log.Info("power off", "boot", m.boot.id)
	boot := m.boot
	m.boot = nil
	boot.cancel()
	for _, pid := range sortedKeys(m.processes) {
		if p := m.processes[pid]; p != nil {
			p.end(exitKilled)
		}
	}
	for name, s := range m.services {
		if s.deleting {
			delete(m.services, name)
		}
		s.reset()
	}
	m.notify()
}

// start boots the machine and lets the SCM start the automatic services.
func (m *Machine) start(first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.boot != nil {
		return
	}
	m.boots++
	b := &boot{id: fmt.Sprint(m.boots), started: time.Now(), first: first}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.environment = m.machineEnvironment()
	m.boot = b
	_ = m.registry.set(prefetchKey, platform.RegistryValue{Name: "BootId", Type: platform.RegistryDWord,
		Integer: uint64(m.boots)})
	m.finishFeatures()
	b.svchost = m.newProcess("svchost.exe", nil)
	b.svchost.image = systemFolder + `\svchost.exe`
	m.startAutomatic()
	m.options.Log.Info("boot", "boot", b.id)
	m.notify()
}

// settled reports whether no service is starting and the SCM has begun to start all automatic
// services; the caller holds the lock.
func (m *Machine) settled() bool {
	for _, s := range m.services {
		if s.autoPending || s.state == platform.StartPending {
			return false
		}
	}
	return true
}

func (m *Machine) awaitServices() {
	_ = m.await(context.Background(), func() bool { return m.closed || (m.boot != nil && m.settled()) })
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boot != nil {
		m.boot.first = false
	}
}

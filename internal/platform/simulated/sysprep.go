package simulated

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
)

// The identity of an installed Windows, and the place where Windows records that its identity was
// removed.
const (
	sysprepExe     = systemFolder + `\Sysprep\sysprep.exe`
	machineGUIDKey = `HKLM\SOFTWARE\Microsoft\Cryptography`
	machineGUID    = "MachineGuid"
	setupStateKey  = `HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Setup\State`
	imageState     = "ImageState"
	imageComplete  = "IMAGE_STATE_COMPLETE"
	imageGeneral   = "IMAGE_STATE_GENERALIZE_RESEAL_TO_OOBE"
)

// sysprepMain imitates sysprep.exe /generalize /oobe /shutdown: it removes the machine's identity
// and its event logs, and switches the machine off. When the saved machine boots again, it gets a
// new name and a new identity. As with the real sysprep, everything else stays: programs, files,
// accounts, SSH keys ("Sysprep (Generalize) a Windows installation"; its states are those of
// "Windows Setup States").
func sysprepMain(_ context.Context, p *Process) int {
	options := map[string]string{}
	for _, arg := range p.Args {
		name, value, _ := strings.Cut(arg, ":")
		options[fold(strings.TrimLeft(name, "/-"))] = value
	}
	for _, name := range []string{"generalize", "oobe", "shutdown"} {
		if _, ok := options[name]; !ok {
			fmt.Fprintf(p.Stderr, "sysprep: the simulation needs /%s.\r\n", name)
			return 1
		}
	}
	if path, ok := options["unattend"]; ok {
		if err := p.checkAnswers(path); err != nil {
			fmt.Fprintf(p.Stderr, "sysprep: the answer file %s: %v\r\n", path, err)
			return 1
		}
	}
	if err := p.Platform.Registry.Delete(machineGUIDKey, machineGUID); err != nil {
		fmt.Fprintf(p.Stderr, "sysprep: %v\r\n", err)
		return 1
	}
	if err := p.Platform.Registry.Set(setupStateKey, platform.RegistryValue{
		Name: imageState, Type: platform.RegistryString, String: imageGeneral,
	}); err != nil {
		fmt.Fprintf(p.Stderr, "sysprep: %v\r\n", err)
		return 1
	}
	m := p.p.m
	m.mu.Lock()
	m.events = nil
	m.mu.Unlock()
	if err := p.p.shutDown("sysprep"); err != nil {
		fmt.Fprintf(p.Stderr, "sysprep: %v\r\n", err)
		return 1
	}
	return 0
}

// checkAnswers returns an error unless the file is an answer file.
func (p *Process) checkAnswers(path string) error {
	f, err := p.Platform.Files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var document struct {
		XMLName xml.Name `xml:"urn:schemas-microsoft-com:unattend unattend"`
	}
	return xml.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&document)
}

// Generalized reports whether the machine was generalised by sysprep and has not booted since.
func (s *Saved) Generalized() bool {
	m := &Machine{registry: restoreKey(s.state.Registry)}
	return m.generalized()
}

func (m *Machine) generalized() bool {
	k, err := m.registry.find(setupStateKey)
	return err == nil && k.values[fold(imageState)].String == imageGeneral
}

// specialize gives a generalised machine an identity, before its first boot.
func (m *Machine) specialize() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.generalized() {
		return
	}
	text := func(key, name, value string) {
		_ = m.registry.set(key, platform.RegistryValue{Name: name, Type: platform.RegistryString, String: value})
	}
	text(machineGUIDKey, machineGUID, strings.Trim(newUUID(), "{}"))
	text(setupStateKey, imageState, imageComplete)
}

// MachineGUID returns the identity that Windows' setup gave to the machine; empty if the machine
// is generalised.
func (m *Machine) MachineGUID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.registry.find(machineGUIDKey)
	if err != nil {
		return ""
	}
	return k.values[fold(machineGUID)].String
}

// Events returns the entries of the machine's event logs.
func (m *Machine) Events() []LoggedEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// randomHostname returns a name as Windows' setup chooses it.
func randomHostname() string { return "WIN-" + rand.Text()[:11] }

// clearEvents removes the entries of a channel, as wevtutil cl does. As on Windows, clearing the
// System or Application log adds an entry to the System log (event 104 of Microsoft-Windows-Eventlog).
func (p *Process) clearEvents(channel string) int {
	if !slices.Contains(eventChannels(), channel) {
		fmt.Fprint(p.Stderr, "Failed to clear log "+channel+". The specified channel could not be found.\r\n")
		return 15007
	}
	if err := p.Context().Err(); err != nil && errors.Is(err, context.Canceled) {
		return 1
	}
	m := p.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = slices.DeleteFunc(m.events, func(e LoggedEvent) bool { return e.Channel == channel })
	if channel == "System" || channel == "Application" {
		m.logEvent(LoggedEvent{
			Channel: "System", Provider: "Microsoft-Windows-Eventlog", ID: 104, Level: 4,
			Message: "The " + channel + " log file was cleared.",
		})
	}
	return 0
}

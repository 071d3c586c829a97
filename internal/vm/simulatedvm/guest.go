package simulatedvm

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
)

// running returns a VM's state, or ErrStopped if it does not execute.
func running(m vm.Machine) (state, error) {
	s, err := read(m)
	if err != nil {
		return s, err
	}
	if !executes(s) {
		return s, vm.ErrStopped
	}
	return s, nil
}

// Addresses returns the forwarded SSH port and the configured address, as far as the record has them.
func (d *Driver) Addresses(_ context.Context, m vm.Machine) (all []vm.Address, err error) {
	if _, err := running(m); err != nil {
		return nil, err
	}
	for _, forward := range m.Network.Forwards {
		if forward.Name == "ssh" {
			all = append(all, vm.Address{IP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Source: "forward", Port: forward.HostPort})
		}
	}
	if ip, err := netip.ParseAddr(m.Network.Address); err == nil {
		all = append(all, vm.Address{IP: ip, Source: "configured", Port: 22})
	}
	return all, nil
}

// Screenshot draws a grey screen.
func (d *Driver) Screenshot(_ context.Context, m vm.Machine, w io.Writer) error {
	if _, err := running(m); err != nil {
		return err
	}
	return draw(w, 128)
}

// draw writes a PNG of a screen in one shade of grey.
func draw(w io.Writer, grey byte) error {
	screen := image.NewGray(image.Rect(0, 0, 64, 48))
	for i := range screen.Pix {
		screen.Pix[i] = color.Gray{Y: grey}.Y
	}
	return png.Encode(w, screen)
}

// keyNames returns the names of keys that are longer than a character.
func keyNames() []string {
	return []string{
		"ret", "esc", "tab", "spc", "backspace", "delete", "insert", "home", "end", "pgup", "pgdn", "up", "down", "left",
		"right",
		"ctrl", "alt", "shift", "meta_l", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
	}
}

// SendKeys records the keys; [Driver.Pressed] returns them.
func (d *Driver) SendKeys(_ context.Context, m vm.Machine, keys []string) error {
	s, err := running(m)
	if err != nil {
		return err
	}
	for _, key := range keys {
		for part := range strings.SplitSeq(key, "-") {
			letter := len(part) == 1 && strings.Contains("abcdefghijklmnopqrstuvwxyz0123456789", part)
			if !letter && !slices.Contains(keyNames(), part) {
				return fmt.Errorf("%q is not a key; write it such as ret, a, or ctrl-alt-delete", key)
			}
		}
	}
	s.Keys = append(s.Keys, keys...)
	return write(m, s)
}

// Pressed returns the keys that were pressed since the VM was created or has crashed.
func (d *Driver) Pressed(m vm.Machine) ([]string, error) {
	s, err := read(m)
	return s.Keys, err
}

func (d *Driver) Consoles(_ context.Context, m vm.Machine) ([]vm.Console, error) {
	if _, err := running(m); err != nil {
		return nil, err
	}
	return []vm.Console{{Kind: "vnc", Address: filepath.Join(m.Folder, "vnc.sock")}}, nil
}

// IgnoreUUID is the UUID of VMs whose guests ignore requests to shut down.
const IgnoreUUID = "00000000-0000-4000-8000-000000000000"

func ignores(m vm.Machine) bool { return m.UUID == IgnoreUUID }

// SetIgnores sets whether the guest of an existing VM ignores requests to shut down.
func SetIgnores(m vm.Machine, ignores bool) error {
	return update(m, func(s *state) { s.Ignores = ignores })
}

// Crash ends the VM as if its process had been killed.
func Crash(m vm.Machine) error {
	return update(m, func(s *state) { *s = state{State: vm.Crashed, Snapshots: s.Snapshots, Ignores: s.Ignores} })
}

// Reboot ends the VM as a reboot of your machine does.
func Reboot(m vm.Machine) error { return update(m, func(s *state) { _ = s.end() }) }

func update(m vm.Machine, change func(*state)) error {
	s, err := read(m)
	if err != nil {
		return err
	}
	change(&s)
	return write(m, s)
}

// Send replaces the text that the guest has sent to its serial port.
func Send(m vm.Machine, text string) error {
	return localfile.Replace(filepath.Join(m.Folder, serialFile), []byte(text))
}

// WriteDisk replaces the content of a VM's disk.
func WriteDisk(m vm.Machine, text string) error {
	return localfile.Replace(filepath.Join(m.Folder, diskFile), []byte(text))
}

// ReadDisk returns the content of a VM's disk.
func ReadDisk(m vm.Machine) (string, error) {
	text, err := os.ReadFile(filepath.Join(m.Folder, diskFile))
	return string(text), err
}

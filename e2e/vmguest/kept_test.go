//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/winsetup"
)

func newState(t *testing.T) *state {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "partition"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	const size = 8 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return &state{device: f, slot: size / 2}
}

func (s *state) reopened() *state { return &state{device: s.device, slot: s.slot} }

func TestStateOutlivesTheGuest(t *testing.T) {
	windows := simulated.New(simulated.Options{Hostname: "vm", Preset: simulated.Minimal})
	defer windows.Close()
	windows.WriteFile(`C:\a.txt`, []byte("kept"))
	s := newState(t)
	want := kept{Settings: settings{Hostname: "vm", Keys: []string{"ssh-ed25519 AAAA"}}}
	if err := s.save(want, windows); err != nil {
		t.Fatal(err)
	}
	got, saved, err := s.reopened().load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-saved +loaded)\n%s", diff)
	}
	again := simulated.New(simulated.Options{Saved: saved})
	defer again.Close()
	if text, err := again.ReadFile(`C:\a.txt`); err != nil || string(text) != "kept" {
		t.Errorf("C:\\a.txt is %q, %v", text, err)
	}
}

func TestAnEmptyDiskHasNoState(t *testing.T) {
	k, saved, err := newState(t).load()
	if err != nil || saved != nil {
		t.Errorf("loaded %v, %v, %v", k, saved, err)
	}
}

// TestACutSaveLeavesTheLastState checks that a save that is cut at either of its two writes leaves the
// previous state.
func TestACutSaveLeavesTheLastState(t *testing.T) {
	for cut := range 2 {
		s := newState(t)
		for _, text := range []string{"one", "two", "three"} {
			if err := s.write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		whole := s.device
		s.device = &cutDevice{device: whole, writes: cut}
		if err := s.write([]byte("four")); err == nil {
			t.Fatal("the save was not cut")
		}
		after := &state{device: whole, slot: s.slot}
		if got := string(after.read()); got != "three" {
			t.Errorf("cut at write %d: the disk holds %q, want the state before", cut, got)
		}
		if err := after.write([]byte("five")); err != nil {
			t.Fatal(err)
		}
		if got := string((&state{device: whole, slot: s.slot}).read()); got != "five" {
			t.Errorf("after the next save, the disk holds %q", got)
		}
	}
}

func TestDamagedSlotsAreNotRead(t *testing.T) {
	for name, offset := range map[string]int64{"magic": 0, "number": 8, "length": 16, "hash": 24, "data": block} {
		s := newState(t)
		if err := s.write([]byte("old")); err != nil {
			t.Fatal(err)
		}
		if err := s.write([]byte("new")); err != nil {
			t.Fatal(err)
		}
		at := int64(s.newest%2)*s.slot + offset
		if name == "number" { // a slot with another number is whole, but older
			if _, err := s.device.WriteAt([]byte{0}, at); err != nil {
				t.Fatal(err)
			}
		} else if _, err := s.device.WriteAt([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}, at); err != nil {
			t.Fatal(err)
		}
		if got := string(s.reopened().read()); got != "old" {
			t.Errorf("damaged %s: read %q, want the older state", name, got)
		}
	}
}

func TestAStateThatDoesNotFitIsRefused(t *testing.T) {
	s := newState(t)
	if err := s.write(make([]byte, s.slot)); err == nil {
		t.Error("a state larger than its slot was written")
	}
}

type cutDevice struct {
	device interface {
		ReadAt([]byte, int64) (int, error)
		WriteAt([]byte, int64) (int, error)
		Sync() error
	}
	writes int // the number of writes that succeed; the next write fails after a part of its data
}

func (c *cutDevice) ReadAt(b []byte, at int64) (int, error) { return c.device.ReadAt(b, at) }
func (c *cutDevice) Sync() error                            { return c.device.Sync() }
func (c *cutDevice) WriteAt(b []byte, at int64) (int, error) {
	if c.writes--; c.writes >= 0 {
		return c.device.WriteAt(b, at)
	}
	n, err := c.device.WriteAt(b[:min(len(b)/2, 12)], at)
	if err == nil {
		err = os.ErrClosed
	}
	return n, err
}

// TestStateOfAnInstallation saves a state before Windows has started, as Setup does.
func TestStateOfAnInstallation(t *testing.T) {
	s := newState(t)
	want := kept{Installation: installation{
		Phase: loggingOn, Logon: winsetup.Logon{ComputerName: "win-1", Script: "first.ps1"}, NoNetwork: true,
	}}
	if err := s.save(want, nil); err != nil {
		t.Fatal(err)
	}
	got, windows, err := s.reopened().load()
	if err != nil {
		t.Fatal(err)
	}
	if windows != nil {
		t.Errorf("there is a Windows that was never saved: %v", windows)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the state (-saved +loaded):\n%s", diff)
	}
}

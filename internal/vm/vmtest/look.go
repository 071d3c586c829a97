package vmtest

import (
	"bytes"
	"image/png"
	"testing"

	"github.com/swdt-dev/swdt/internal/vm"
)

// look takes a picture of a running VM, and presses keys in it.
func look(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.running(t, "look")
	has := d.Capabilities()
	var screen bytes.Buffer
	if err := d.Screenshot(ctx, m, &screen); !has.Screenshots {
		fails(t, "screenshot", err, vm.ErrUnsupported)
	} else if check(t, err); true {
		if _, err := png.Decode(&screen); err != nil {
			t.Errorf("the screenshot is no PNG: %v", err)
		}
	}
	if err := d.SendKeys(ctx, m, []string{"ret", "ctrl-alt-delete"}); !has.Keys {
		fails(t, "keys", err, vm.ErrUnsupported)
	} else if check(t, err); true {
		for _, unknown := range []string{"", "no-such-key", "ret;quit", "-"} {
			if d.SendKeys(ctx, m, []string{unknown}) == nil {
				t.Errorf("the key %q was pressed", unknown)
			}
		}
	}
	consoles, err := d.Consoles(ctx, m)
	check(t, err)
	for _, c := range consoles {
		if c.Kind == "" || c.Address == "" {
			t.Errorf("an incomplete console: %+v", c)
		}
	}
	f.addresses(t, m)
	f.is(t, m, vm.Running)
}

// addresses checks that the forwarded SSH port, if there is one, is among the addresses.
func (f Fixture) addresses(t *testing.T, m vm.Machine) {
	t.Helper()
	known, err := f.Driver.Addresses(t.Context(), m)
	check(t, err)
	ports := map[int]bool{}
	for _, a := range known {
		if !a.IP.IsValid() || a.IP.IsUnspecified() || a.Source == "" || a.Port <= 0 {
			t.Errorf("an incomplete address: %+v", a)
		}
		if a.IP.IsLoopback() {
			ports[a.Port] = true
		}
	}
	for _, forward := range m.Network.Forwards {
		if forward.Name == "ssh" && !ports[forward.HostPort] {
			t.Errorf("SSH is forwarded from port %d, which is not among %v", forward.HostPort, known)
		}
	}
}

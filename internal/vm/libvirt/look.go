package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wait"
)

// maxScreen bounds a screenshot in bytes.
const maxScreen = 64 << 20

// Screenshot writes the domain's screen as PNG.
func (d *Driver) Screenshot(ctx context.Context, m vm.Machine, w io.Writer) error {
	picture, err := running(ctx, m, answerLimit, func(c *client, domain libvirt.Domain, _ record) ([]byte, error) {
		return firstPicture(ctx, func() ([]byte, error) {
			screen := bounded.Head{Most: maxScreen, Refuse: fmt.Errorf("the screen has more than %d bytes", maxScreen)}
			_, err := c.DomainScreenshot(domain, &screen, 0, 0)
			return screen.Bytes(), err
		})
	})
	if err == nil {
		_, err = w.Write(picture)
	}
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	return nil
}

// pictureLimit bounds the wait for the first picture of a display.
const pictureLimit = 10 * time.Second

// errEmpty is returned if libvirt sends a picture of no bytes.
var errEmpty = errors.New("libvirt sends an empty picture; the domain's display shows nothing yet, so try again")

// firstPicture returns the picture that take takes, as PNG. The display of a domain that has just started has no
// picture yet; firstPicture waits for it.
func firstPicture(ctx context.Context, take func() ([]byte, error)) (picture []byte, err error) {
	err = wait.Condition{
		Name: "the first picture of the display", Interval: lookInterval, Limit: pictureLimit,
		Look: func(context.Context) (err error) {
			picture, err = converted(take())
			return wait.StopIf(err != nil && !errors.Is(err, errEmpty), err)
		},
	}.Wait(ctx)
	return picture, err
}

// converted returns what libvirt has sent as PNG. The client expects the reply's type at the end of the stream.
// The end has no type, so the client fails after it has received the picture. Only a picture that is not whole
// counts as a failure.
func converted(sent []byte, failed error) ([]byte, error) {
	if hasCode(failed, libvirt.ErrNoSupport, libvirt.ErrOperationUnsupported) {
		return nil, fmt.Errorf("%w: %w; `virsh edit` gives the domain a video device", vm.Unsupported(Name, "screenshot"),
			failed)
	}
	if len(sent) == 0 {
		if _, refused := errors.AsType[libvirt.Error](failed); refused {
			return nil, failed
		}
		return nil, errors.Join(failed, errEmpty)
	}
	picture, broken := toPNG(sent)
	if broken != nil {
		return nil, errors.Join(failed, broken)
	}
	return picture, nil
}

const (
	// maxKeysAtOnce bounds the keys of a combination, and maxKeys the combinations of a call.
	maxKeysAtOnce, maxKeys = 8, 512
	// keyTime is how long a combination is held, in milliseconds.
	keyTime = 50
	// linuxCodes is the number with which libvirt identifies the key codes of Linux.
	linuxCodes = uint32(libvirt.KeycodeSetLinux)
)

// SendKeys presses keys one after the other. It checks all names before it presses the first key.
func (d *Driver) SendKeys(ctx context.Context, m vm.Machine, keys []string) error {
	_, err := running(ctx, m, answerLimit, func(c *client, domain libvirt.Domain, _ record) (struct{}, error) {
		if len(keys) > maxKeys {
			return struct{}{}, fmt.Errorf("%d keys are more than %d; send them in parts", len(keys), maxKeys)
		}
		var all [][]uint32
		for _, combination := range keys {
			codes, err := keyCodes(combination)
			if err != nil {
				return struct{}{}, err
			}
			all = append(all, codes)
		}
		for i, codes := range all {
			if err := c.DomainSendKey(domain, linuxCodes, keyTime, codes, 0); err != nil {
				return struct{}{}, fmt.Errorf("key %q: %w", keys[i], err)
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return fmt.Errorf("press keys: %w", err)
	}
	return nil
}

// Consoles returns the screens and serial ports of a running domain.
func (d *Driver) Consoles(ctx context.Context, m vm.Machine) ([]vm.Console, error) {
	all, err := running(ctx, m, answerLimit, func(c *client, domain libvirt.Domain, _ record) ([]vm.Console, error) {
		described, err := c.describe(domain)
		return described.consoles(), err
	})
	if err != nil {
		return nil, fmt.Errorf("find the consoles: %w", err)
	}
	return all, nil
}

func (d description) consoles() (all []vm.Console) {
	add := func(kind, address string) {
		if address != "" {
			all = append(all, vm.Console{Kind: kind, Address: address})
		}
	}
	for _, g := range d.Devices.Graphics {
		if g.Type == "vnc" || g.Type == "spice" {
			add(g.Type, g.address())
		}
	}
	for _, serial := range d.Devices.Serials {
		add("serial", serial.address())
	}
	return all
}

// address returns the socket or HOST:PORT of a screen; "" if nothing listens.
func (g graphics) address() string {
	host := g.Listen
	for _, listen := range g.Listens {
		if listen.Socket != "" {
			return listen.Socket
		}
		if listen.Address != "" {
			host = listen.Address
		}
	}
	switch {
	case g.Socket != "":
		return g.Socket
	case g.Port < 1 || g.Port > 65535:
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(g.Port))
}

// address returns the path or HOST:PORT of a serial port; "" if no viewer can connect to the port.
func (p character) address() string {
	for _, source := range p.Sources {
		switch {
		case p.Type == "pty" || p.Type == "unix":
			return source.Path
		case p.Type == "tcp" && source.Mode == "bind":
			return net.JoinHostPort(source.Host, source.Service)
		}
	}
	return ""
}

var errNoPicture = errors.New("libvirt sent neither PNG nor PPM")

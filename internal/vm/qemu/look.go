package qemu

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// maxScreen bounds a screenshot in bytes. The video memory has 16 MB.
const maxScreen = 64 << 20

// Screenshot writes the VM's screen as PNG.
func (d *Driver) Screenshot(ctx context.Context, m vm.Machine, w io.Writer) error {
	now, err := d.running("take a screenshot", m)
	if err != nil {
		return err
	}
	picture, err := d.dump(ctx, m, now)
	if err == nil {
		_, err = w.Write(picture)
	}
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	return nil
}

// dump returns the screen of a running VM as PNG.
func (d *Driver) dump(ctx context.Context, m vm.Machine, now found) ([]byte, error) {
	client, err := qmp.Dial(ctx, sockets{now.started.Sockets}.look())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return screen(ctx, m, client)
}

// screen makes QEMU write the screen into a file in the VM's folder, and returns the file's
// content, a PNG.
func screen(ctx context.Context, m vm.Machine, client *qmp.Client) ([]byte, error) {
	folder, err := os.MkdirTemp(filesOf(m).run(), "screen-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "screen.png")
	if err := client.Run(ctx, "screendump", map[string]any{"filename": path, "format": "png"}, nil); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	picture, err := io.ReadAll(io.LimitReader(file, maxScreen+1))
	if err != nil {
		return nil, err
	}
	if len(picture) > maxScreen {
		return nil, fmt.Errorf("the screen has more than %d bytes", maxScreen)
	}
	if _, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil {
		return nil, fmt.Errorf("QEMU wrote no PNG: %w", err)
	}
	return picture, nil
}

const (
	maxKeys = 512
	// keyTime is how long a combination is held, in milliseconds.
	keyTime = 50
)

// SendKeys presses keys one after the other. It checks the form of all names before it presses the
// first key.
func (d *Driver) SendKeys(ctx context.Context, m vm.Machine, keys []string) error {
	now, err := d.running("press keys", m)
	if err != nil {
		return err
	}
	if len(keys) > maxKeys {
		return fmt.Errorf("press keys: %d keys are more than %d; send them in parts", len(keys), maxKeys)
	}
	var all [][]key
	for _, name := range keys {
		combination, err := parseKeys(name)
		if err != nil {
			return fmt.Errorf("press keys: %w", err)
		}
		all = append(all, combination)
	}
	client, err := qmp.Dial(ctx, sockets{now.started.Sockets}.look())
	if err != nil {
		return fmt.Errorf("press keys: %w", err)
	}
	defer client.Close()
	for i, combination := range all {
		arguments := map[string]any{"keys": combination, "hold-time": keyTime}
		err := client.Run(ctx, "send-key", arguments, nil)
		var refused *qmp.Error
		if errors.As(err, &refused) {
			return fmt.Errorf("press key %q: %w; QEMU's names are ret, esc, spc, tab, f1, a, 1, shift, ctrl, alt",
				keys[i], err)
		} else if err != nil {
			return fmt.Errorf("press keys: %w", err)
		}
	}
	return nil
}

// key is a key in the form that QMP's command send-key takes.
type key struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

// parseKeys splits a combination such as ctrl-alt-delete.
func parseKeys(combination string) ([]key, error) {
	const most, letters = 8, "abcdefghijklmnopqrstuvwxyz0123456789_"
	var keys []key
	for name := range strings.SplitSeq(combination, "-") {
		if name == "" || len(name) > 32 || strings.Trim(name, letters) != "" {
			return nil, fmt.Errorf("%q is no combination of keys; join QEMU's names as in ctrl-alt-delete", combination)
		}
		keys = append(keys, key{"qcode", name})
	}
	if len(keys) > most {
		return nil, fmt.Errorf("%q has more than %d keys", combination, most)
	}
	return keys, nil
}

// Consoles returns the VM's screen, if it has a VNC server, and its serial port.
func (d *Driver) Consoles(ctx context.Context, m vm.Machine) ([]vm.Console, error) {
	now, err := d.running("find the consoles", m)
	if err != nil {
		return nil, err
	}
	s := sockets{now.started.Sockets}
	serial := vm.Console{Kind: "serial", Address: s.serial()}
	switch m.Display {
	case vm.NoDisplay:
		return []vm.Console{serial}, nil
	case vm.DisplayPort:
		secret := filesOf(m).vncSecret()
		address, err := screenPort(ctx, s, secret)
		if err != nil {
			return nil, fmt.Errorf("find the port of the screen: %w", err)
		}
		return []vm.Console{{Kind: "vnc", Address: address, PasswordFile: secret}, serial}, nil
	}
	return []vm.Console{{Kind: "vnc", Address: s.vnc()}, serial}, nil
}

// screenPort returns the host and the port of QEMU's VNC server. It sets the password if the start of the VM was
// interrupted before.
func screenPort(ctx context.Context, s sockets, secret string) (string, error) {
	client, err := qmp.Dial(ctx, s.look())
	if err != nil {
		return "", err
	}
	defer client.Close()
	if !exists(secret) {
		if err := protectScreen(ctx, client, secret); err != nil {
			return "", err
		}
	}
	var screen struct{ Host, Service string }
	if err := client.Run(ctx, "query-vnc", nil, &screen); err != nil {
		return "", err
	}
	return net.JoinHostPort(screen.Host, screen.Service), nil
}

// vncPassword is the length of a VNC password. VNC uses no more than 8 characters.
const vncPassword = 8

// protectScreen gives the VNC server a new random password, and writes it into a file that only this
// user can read. Until then QEMU refuses all viewers.
func protectScreen(ctx context.Context, client *qmp.Client, path string) error {
	password := rand.Text()[:vncPassword]
	err := client.Run(ctx, "set_password", map[string]any{"protocol": "vnc", "password": password}, nil)
	if err != nil {
		return fmt.Errorf("set the password of the screen: %w", err)
	}
	if err := localfile.Replace(path, []byte(password+"\n")); err != nil {
		return fmt.Errorf("write the password of the screen: %w", err)
	}
	return nil
}

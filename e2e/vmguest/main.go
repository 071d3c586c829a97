//go:build linux

// Command vmguest is the only program of a small Linux guest that acts as a Windows virtual
// machine in tests of swdt vm. It serves the simulated Windows of
// internal/platform/simulated behind SSH on port 22, and keeps that Windows' files,
// registry and services on the guest's disk, so that snapshots of the disk hold them.
//
// lab/build.sh guest makes the disk with this program; internal/testing/vmguest finds the disk.
//
//   - main.go: the steps of a boot
//   - kernel.go: file systems, modules, messages, the end of the guest
//   - settings.go: the settings that a guest reads from the configuration CD
//   - kept.go: the two slots on the disk
//   - network.go: the address
//   - windows.go: the simulated Windows, and when it is saved
//   - setup.go: a boot from the CD that imitates Windows Setup
//   - installed.go: the boots of a disk that this CD has installed, until the first logon ends
//   - screen.go: the content of the screen
//   - guestagent.go: QEMU's guest agent
//   - buttons.go: the power button
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "vmguest is the first program of a virtual machine: lab/build.sh guest makes its disk")
		os.Exit(2)
	}
	c := openConsole()
	if err := boot(context.Background(), c); err != nil {
		c.print("failed: %v", err)
		end(powerOff)
	}
}

// boot brings the guest up and serves it until it is switched off.
func boot(ctx context.Context, c *console) error {
	if err := mountKernel(); err != nil {
		return err
	}
	c.reopen()
	c.print("guest is booting")
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if bootedFromCD() {
		if err := setUp(ctx, c); err != nil {
			return err
		}
	}
	disk, err := findDisk(ctx)
	if err != nil {
		return err
	}
	kept, state, err := disk.load()
	if err != nil {
		return err
	}
	if kept.Installation.Phase != installed {
		if err := kept.install(ctx, disk, c); err != nil {
			return err
		}
	} else {
		if state != nil && state.Generalized() {
			kept.Settings.Hostname = "" // Windows chooses a name, unless a CD has one
		}
		if err := kept.configure(); err != nil {
			return err
		}
	}
	return serve(ctx, kept, state, disk, c)
}

// configure applies the settings of a CD.
func (k *kept) configure() error {
	found, err := readCDs()
	if errors.Is(err, errNoSettings) {
		return nil
	}
	k.Settings = k.Settings.with(found)
	return err
}

// serve runs Windows and its SSH server. Windows keeps the host key and the authorized keys in its own
// files, as sshd does. So an image of the disk contains these keys unless a program has removed them.
func serve(ctx context.Context, kept kept, state *simulated.Saved, disk *state, c *console) error {
	keys, err := kept.Settings.keys()
	if err != nil {
		return err
	}
	kept.Settings.Keys = nil
	g, err := startWindows(kept, state, disk, c)
	if err != nil {
		return err
	}
	sandbox.Authorize(g.windows, keys...)
	hostKey, err := sandbox.HostKeyOf(g.windows)
	if err != nil {
		return err
	}
	go g.watchButtons(ctx)
	go g.serveGuestAgent(ctx)
	if !kept.Installation.NoNetwork {
		go bringUpNetwork(ctx, kept.Settings, c)
	}
	if err := g.save(); err != nil { // the guest must keep its host key even if it is switched off at once
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":22")
	if err != nil {
		return fmt.Errorf("listen for SSH: %w", err)
	}
	c.print("host key %s", ssh.FingerprintSHA256(hostKey.PublicKey()))
	c.print("ssh is ready")
	return sandbox.Serve(ctx, listener, sandbox.ServerOptions{
		Machine: g.windows, HostKey: hostKey, OwnKeys: true,
		Password: kept.Settings.Password, Shell: kept.Settings.Shell, Forward: true,
	})
}

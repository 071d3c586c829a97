//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/swdt-dev/swdt/internal/testing/winsetup"
)

// The phases of an installation, by the boots of the disk.
const (
	installed    = ""
	specializing = "specialize"  // the next boot prepares Windows for its devices, and restarts
	loggingOn    = "logon"       // the next boot logs on, and runs the script
	generalized  = "generalized" // the next boot logs on with new answers, and runs the script
)

// installation is the state of an installation that has not ended, and the way in which it ends.
type installation struct {
	Phase     string
	Mode      winsetup.Mode
	Logon     winsetup.Logon
	NoNetwork bool // Windows has no driver for the network card
}

// install continues the installation. It returns nil if Windows is installed and stays on.
func (k *kept) install(ctx context.Context, disk *state, c *console) error {
	c.print("installation: %s", k.Installation.Phase)
	if k.Installation.Phase == specializing {
		c.show(black, "", "Getting devices ready")
		k.Installation.Phase = loggingOn
		if err := disk.save(*k, nil); err != nil {
			return err
		}
		end(restart)
		return errors.New("the kernel refuses to restart")
	}
	m, _, err := findHardware(ctx)
	if err != nil {
		return err
	}
	if k.Installation.Phase == generalized {
		if k.Installation.Logon, err = winsetup.FirstStart(m); err != nil {
			return c.stopAt(err)
		}
	}
	c.show(white, "Administrator", "Preparing Windows")
	script, ok := c.runScript(m, k.Installation)
	if !ok {
		c.print("the script has failed")
		c.show(black, "Administrator: Windows PowerShell", "The first-boot script has failed.")
		idle()
	}
	return k.finish(script, disk, c)
}

// runScript runs the first-boot script, which reports over the first serial port.
func (c *console) runScript(m winsetup.Machine, i installation) (winsetup.Script, bool) {
	port, err := os.OpenFile("/dev/ttyS0", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		c.print("open the serial port: %v", err)
		return winsetup.Script{}, false
	}
	defer port.Close()
	print := func(line string) {
		if _, err := fmt.Fprintf(port, "\r\n%s\r\n", line); err != nil {
			c.print("write to the serial port: %v", err)
		}
	}
	script, err := winsetup.FindScript(m, i.Logon.Script)
	if err != nil {
		c.print("%v", err)
		print("SWDT exit=2 no drive has the script")
		return script, false
	}
	fail := ""
	if i.Mode == winsetup.ScriptFails {
		fail = "openssh"
	}
	return script, script.Run(fail, !i.NoNetwork, print)
}

// finish does the work of the script after its stages: the machine stays on, or it shuts down and can
// serve as an image for other machines.
func (k *kept) finish(script winsetup.Script, disk *state, c *console) error {
	keys, err := script.Keys()
	if err != nil {
		return err
	}
	i := k.Installation
	k.Settings.Hostname, k.Settings.Keys = i.Logon.ComputerName, keys
	k.Settings.Password = cmp.Or(script.Password(), i.Logon.Password)
	k.Installation = installation{NoNetwork: i.NoNetwork}
	if script.Generalizes() {
		k.Installation.Phase = generalized
		k.Settings = settings{Preset: k.Settings.Preset}
	}
	if script.Stays() {
		return nil
	}
	if err := disk.save(*k, nil); err != nil {
		return err
	}
	c.print("powering off")
	end(powerOff)
	return errors.New("the kernel refuses to power off")
}

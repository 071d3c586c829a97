//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// console prints messages to the serial port and the screen.
type console struct {
	mu  sync.Mutex
	out []io.Writer
}

// openConsole opens the only device that exists before anything is mounted.
func openConsole() *console {
	c := &console{}
	c.add("/dev/console")
	return c
}

// reopen adds the screen, which exists only after the devices are mounted.
func (c *console) reopen() { c.add("/dev/tty0") }

func (c *console) add(device string) {
	if f, err := os.OpenFile(device, os.O_WRONLY|unix.O_NOCTTY, 0); err == nil {
		c.out = append(c.out, f)
	}
}

// print prints a message of the guest itself, after "guest: ".
func (c *console) print(format string, args ...any) { c.line("guest: " + fmt.Sprintf(format, args...)) }

// line prints text and a newline on every open device. It ignores errors of writing, since there is
// no other place to report them.
func (c *console) line(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, out := range c.out {
		_, _ = io.WriteString(out, text+"\n")
	}
}

func mountKernel() error {
	for _, m := range []struct{ kind, folder string }{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
	} {
		if err := unix.Mount(m.kind, m.folder, m.kind, unix.MS_NOSUID, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", m.folder, err)
		}
	}
	return nil
}

// loadModules loads the files of a folder in the order of their names.
func loadModules(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.ko"))
	if err != nil {
		return fmt.Errorf("list the modules: %w", err)
	}
	slices.Sort(files)
	for _, file := range files {
		if err := loadModule(file); err != nil {
			return fmt.Errorf("load module %s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

func loadModule(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// The ways in which a guest ends.
const (
	powerOff = unix.LINUX_REBOOT_CMD_POWER_OFF
	restart  = unix.LINUX_REBOOT_CMD_RESTART
	halt     = unix.LINUX_REBOOT_CMD_HALT
)

// end ends the guest now. It returns only if the kernel refuses.
func end(how int) {
	unix.Sync()
	_ = unix.Reboot(how)
}

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/swdt-dev/swdt/internal/testing/winsetup"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// setupWord is on the kernel's command line if firmware has started the CD; lab/guest writes it.
	setupWord = "swdt.setup"
	// promptSeconds is how long the CD waits for a key, as the CD of Windows does.
	promptSeconds = 5
	// hardwareLimit bounds the time until the kernel has found the CDs.
	hardwareLimit = 30 * time.Second
	// systemImage is the file of the media with the system partition of an installed guest.
	systemImage = "sources/guest.img"
	// copied is the number of bytes that Setup writes to the disk besides the system partition. It
	// is larger than partitions with empty file systems, so that the code that watches an
	// installation detects that Setup copies Windows.
	copied = 272 << 20
)

func bootedFromCD() bool {
	line, err := os.ReadFile("/proc/cmdline")
	return err == nil && strings.Contains(string(line), setupWord)
}

// setUp imitates Windows Setup. It returns nil if no key was pressed and the disk can boot.
func setUp(ctx context.Context, c *console) error {
	m, disk, err := findHardware(ctx)
	if err != nil {
		return err
	}
	c.print("press any key to boot from CD or DVD")
	if !c.prompted() {
		c.print("no key was pressed")
		if _, err := partition(stateLabel); err == nil {
			return nil
		}
		c.show(black, "BdsDxe: No bootable option or device was found.",
			"BdsDxe: Press any key to enter the Boot Manager Menu.")
		idle()
	}
	c.print("setup is starting")
	c.show(white, "Windows Setup", "Setup is starting")
	if err := load(m, "sources/boot.wim"); err != nil {
		return err
	}
	plan, err := winsetup.Install(m)
	if err != nil {
		return c.stopAt(err)
	}
	c.print("setup installs %s", plan.Edition)
	if err := c.copyWindows(ctx, m, disk, plan); err != nil {
		return err
	}
	c.print("setup restarts")
	end(restart)
	return errors.New("the kernel refuses to restart")
}

// stopAt shows the screen at which Setup waits for a person, if err is a *winsetup.Screen, and waits
// forever. It returns any other error.
func (c *console) stopAt(err error) error {
	var s *winsetup.Screen
	if !errors.As(err, &s) {
		return err
	}
	c.print("%v", s)
	c.show(white, s.Title, s.Text)
	go func() {
		<-anyKey()
		c.print("a key answered the screen")
		c.show(white, s.Title, "Are you sure?")
	}()
	idle()
	return nil
}

// prompted waits for a key, and reports whether a key was pressed within promptSeconds. It counts
// single seconds, so that a guest whose processor hardly runs still sees a key in each of them.
func (c *console) prompted() bool {
	key := anyKey()
	for n := range promptSeconds {
		c.show(black, "Press any key to boot from CD or DVD..."+strings.Repeat(".", n), "")
		select {
		case <-key:
			return true
		case <-time.After(time.Second):
		}
	}
	return false
}

// anyKey returns a channel that gets an element when a key of a keyboard is pressed.
func anyKey() <-chan struct{} {
	key := make(chan struct{}, 1)
	names, _ := filepath.Glob("/sys/class/input/event*/device/name") // the pattern is valid
	for _, file := range names {
		name, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(name), "keyboard") {
			continue
		}
		go func() {
			if pressed("/dev/input/"+filepath.Base(filepath.Dir(filepath.Dir(file))), 0) == nil {
				select {
				case key <- struct{}{}:
				default:
				}
			}
		}()
	}
	return key
}

// findHardware returns the machine, with its CDs mounted, and the device of disk 0.
func findHardware(ctx context.Context) (m winsetup.Machine, disk string, err error) {
	ctx, cancel := context.WithTimeout(ctx, hardwareLimit)
	defer cancel()
	before := 0
	err = wait.Condition{
		Name: "all CD drives and disks", Interval: time.Second,
		Look: func(context.Context) error {
			found, err := filepath.Glob("/sys/block/[sv][rd]*")
			if err != nil {
				return wait.Stop(err)
			}
			if before != len(found) || before == 0 {
				before = len(found)
				return fmt.Errorf("found %d until now", before)
			}
			return nil
		},
	}.Wait(ctx)
	if err != nil {
		return m, "", err
	}
	if m.Drives, err = mountCDs(); err != nil {
		return m, "", err
	}
	disks, err := filepath.Glob("/sys/block/[sv]d[a-z]")
	if err == nil && len(disks) > 0 {
		disk = "/dev/" + filepath.Base(disks[0])
		m.DiskBytes, err = diskSize(disks[0])
		m.VirtioDisk = strings.HasPrefix(filepath.Base(disks[0]), "vd")
	}
	cards, _ := filepath.Glob("/sys/class/net/*/device/driver") // the pattern is valid
	for _, card := range cards {
		driver, _ := os.Readlink(card)
		m.VirtioNetwork = m.VirtioNetwork || filepath.Base(driver) == "virtio_net"
	}
	return m, disk, err
}

func diskSize(folder string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(folder, "size"))
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	sectors, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return sectors * 512, err
}

// mountCDs mounts the discs of all drives, as UDF or else as ISO 9660, and returns the drives with their
// letters, from D on.
func mountCDs() ([]winsetup.Drive, error) {
	devices, err := filepath.Glob("/dev/sr[0-9]")
	if err != nil {
		return nil, fmt.Errorf("list the CD drives: %w", err)
	}
	var drives []winsetup.Drive
	for i, device := range devices {
		folder := "/cds/" + strconv.Itoa(i)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		for _, kind := range []string{"udf", "iso9660"} {
			if unix.Mount(device, folder, kind, unix.MS_RDONLY, "") == nil {
				drives = append(drives, winsetup.Drive{Letter: string(rune('D' + i)), FS: os.DirFS(folder)})
				break
			}
		}
	}
	return drives, nil
}

// load reads a file of the media to its end. A real Setup reads this file to load Windows PE into
// memory.
func load(m winsetup.Machine, name string) error {
	file, _, err := openMedia(m, name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(io.Discard, file)
	return err
}

// openMedia opens a file of the first CD that has it.
func openMedia(m winsetup.Machine, name string) (io.ReadCloser, int64, error) {
	for _, drive := range m.Drives {
		file, err := drive.FS.Open(name)
		if err != nil {
			continue
		}
		info, err := file.Stat()
		if err != nil {
			return nil, 0, err
		}
		return file, info.Size(), nil
	}
	return nil, 0, fmt.Errorf("no CD has %s", name)
}

// copyWindows makes the partitions, and writes an installed guest and its state into them.
func (c *console) copyWindows(ctx context.Context, m winsetup.Machine, device string, plan winsetup.Plan) error {
	disk, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the disk: %w", err)
	}
	defer disk.Close()
	if err := winsetup.WriteTable(disk, m.DiskBytes, plan.Partitions, stateLabel); err != nil {
		return err
	}
	c.show(white, "Installing Windows", "Copying Windows files")
	for _, p := range plan.Partitions {
		switch {
		case p.Kind == "EFI":
			err = copySystem(m, disk, p)
		case p.Windows && plan.Mode == winsetup.RebootLoop:
			err = fill(disk, p, copied/8) // the mode needs no more
		case p.Windows:
			err = fill(disk, p, copied)
		}
		if err != nil {
			return err
		}
	}
	if err := disk.Sync(); err != nil {
		return fmt.Errorf("write the disk: %w", err)
	}
	if plan.Mode == winsetup.Hang {
		c.print("setup hangs")
		idle()
	}
	if _, err := unix.IoctlRetInt(int(disk.Fd()), unix.BLKRRPART); err != nil {
		return fmt.Errorf("read the disk's partitions again: %w", err)
	}
	state, err := findDisk(ctx)
	if err != nil {
		return err
	}
	return state.save(kept{Installation: installation{
		Phase: specializing, Mode: plan.Mode, Logon: plan.Logon, NoNetwork: !plan.Network,
	}}, nil)
}

// copySystem writes the system partition.
func copySystem(m winsetup.Machine, disk *os.File, p winsetup.Partition) error {
	image, size, err := openMedia(m, systemImage)
	if err != nil {
		return err
	}
	defer image.Close()
	if size > p.Size {
		return fmt.Errorf("the system partition has %d bytes, and needs %d", p.Size, size)
	}
	if _, err := io.Copy(io.NewOffsetWriter(disk, p.Offset), image); err != nil {
		return fmt.Errorf("write the system partition: %w", err)
	}
	return nil
}

// fill writes size bytes into a partition, between the beginnings of the two slots of the guest's state.
func fill(disk *os.File, p winsetup.Partition, size int) error {
	data := []byte(strings.Repeat("Windows ", 1<<17))
	for at := p.Offset + p.Size/4; size > 0; size -= len(data) {
		if _, err := disk.WriteAt(data, at); err != nil {
			return fmt.Errorf("write the partition of Windows: %w", err)
		}
		at += int64(len(data))
	}
	return nil
}

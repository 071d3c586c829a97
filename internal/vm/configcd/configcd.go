// Package configcd writes the CD that an unattended installation reads beside the media
// of Windows: the answer file, the script of the first logon, the public keys, drivers
// and OpenSSH.
//
// The CD holds the password of the Administrator, in a form that anyone can decode. Its
// file therefore belongs to its user alone (mode 0600, from its first byte), and is in a
// folder that no other user can write. [Wipe] removes it when the installation has ended;
// the script removes the copies inside the guest. The CD is never a part of a
// golden image or of a snapshot.
//
//   - configcd.go: the options, and the file
//   - content.go: the files on the CD
//   - keys.go: the public keys
//   - folder.go, owner_unix.go, owner_windows.go: who can reach the file
//   - sum.go: its hash
//   - wipe.go: its removal
package configcd

import (
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/disc"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

// Label is the CD's label.
const Label = "SWDT_CONFIG"

// Options describe a CD.
type Options struct {
	// Answer are the answers. Write sets DriverFolder and FirstLogon itself.
	Answer answer.Options
	// FirstStart makes the CD for the first start of a generalised image, instead of the
	// one for an installation.
	FirstStart bool
	// Keys are lines of authorized_keys that may log on as Administrator; at least one.
	Keys []string
	// Drivers holds the drivers, in folders of any names; nil: none.
	Drivers fs.FS
	// OpenSSH is the MSI or the zip of Win32-OpenSSH. If it is the zero File, the VM uses the
	// OpenSSH of Windows, which Windows before Server 2025 downloads from the internet.
	OpenSSH File
	// Agent is the MSI of QEMU's guest agent; the zero File: none.
	Agent File
	// End selects how the script ends; "": the machine stays on.
	End firstboot.End
	// Time is the time of all files. The same options and time give the same bytes.
	Time time.Time
}

// File is a file of a file system, such as a folder of your machine or an ISO.
type File struct {
	FS   fs.FS
	Path string
}

func (f File) absent() bool { return f.FS == nil }

// Write makes, or replaces, the file of the CD. It either succeeds or leaves the file as
// it was. All problems of the options are reported at once.
func Write(path string, o Options) error {
	if err := checkFolder(path); err != nil {
		return fmt.Errorf("write the configuration CD: %w", err)
	}
	image, err := o.image()
	if err != nil {
		return fmt.Errorf("write the configuration CD: %w", err)
	}
	err = localfile.ReplaceBy(path, func(w io.Writer) error {
		_, err := image.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the configuration CD: %w", err)
	}
	return nil
}

// image returns the CD's content.
func (o Options) image() (*disc.Image, error) {
	c, err := o.content()
	if err != nil {
		return nil, err
	}
	image, err := disc.New(Label, o.Time)
	if err != nil {
		return nil, err
	}
	for _, text := range c.texts {
		if err := image.Add(text.name, text.content); err != nil {
			return nil, err
		}
	}
	for _, copied := range c.files {
		if err := image.AddFile(copied.name, copied.from.FS, copied.from.Path); err != nil {
			return nil, err
		}
	}
	if o.Drivers != nil {
		if err := image.AddFS(driverFolder, o.Drivers); err != nil {
			return nil, err
		}
	}
	return image, nil
}

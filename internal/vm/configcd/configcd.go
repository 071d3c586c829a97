// Package configcd writes the CD that Windows reads during an unattended installation, or at the
// first start of a generalised image: the answer file, the script of the first logon, the public
// keys, drivers and OpenSSH.
//
// The CD holds the password of the Administrator, in a form that anyone can decode. The CD's file
// is therefore readable by this user alone (mode 0600, from its first byte), and is in a folder
// that no other user can write to. The caller removes the file with [Wipe], or replaces it with
// [Empty], when Windows needs the CD no more; the script of the first logon removes the copies
// inside the guest. The CD is never a part of a golden image or of a snapshot.
//
//   - configcd.go: the options, and the file
//   - content.go: the files on the CD
//   - keys.go: the public keys
//   - folder.go: which users can write to the file's folder
//   - sum.go: the hash of a CD
//   - wipe.go: removing the file
package configcd

import (
	"crypto/rsa"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/disc"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

// Label is the volume label of the CD.
const Label = "SWDT_CONFIG"

// Options describe a CD.
type Options struct {
	// Answer has the answers for Windows Setup. Write itself sets their DriverFolder and
	// FirstLogon.
	Answer answer.Options
	// FirstStart selects the CD for the first start of a generalised image, instead of the CD for
	// an installation.
	FirstStart bool
	// Keys has at least one line of authorized_keys. All keys in these lines may log on as
	// Administrator.
	Keys []string
	// Drivers holds the drivers, in folders of any names; nil if the CD has no drivers.
	Drivers fs.FS
	// OpenSSH is the MSI or the zip of Win32-OpenSSH. If it is the zero File, the VM uses the
	// OpenSSH of Windows; an installation of any release except Server 2025 downloads this OpenSSH
	// from the internet.
	OpenSSH File
	// Agent is the MSI of QEMU's guest agent. If it is the zero File, the CD has no agent.
	Agent File
	// Seal is the key with which the machine seals a new password of the Administrator; nil if the password of Answer
	// stays.
	Seal *rsa.PublicKey
	// End selects how the script ends; "" means that the machine stays on.
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

// Write makes or replaces the CD's file at path. If it fails, the file stays as it was. The error
// reports all problems of the options at once.
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

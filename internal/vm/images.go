package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

// Images are the golden images that ISOs of node files make. Package golden has them.
type Images interface {
	// Find returns the golden image of a node file whose spec.machine names an ISO, also if it
	// does not exist yet.
	Find(ctx context.Context, document config.Document, r ui.Reporter) (Golden, error)
	// Use is like Find, and first builds an image that does not exist. The image is not removed
	// until release is called.
	Use(ctx context.Context, document config.Document, r ui.Reporter) (image Golden, release func(), err error)
}

// Golden is a golden image for a new VM.
type Golden struct {
	Image  Image // without paths if it does not exist
	Exists bool
	// WriteCD writes the CD for the first start of a VM, which gives it a name, the
	// Administrator's password and the keys that may log in, lines of authorized_keys.
	WriteCD func(path string, password answer.Password, keys []string) error
}

// WithImages sets the golden images. open is called when a node file names an ISO.
func (s *Machines) WithImages(open func() (Images, error)) *Machines {
	s.images = open
	return s
}

// errNoImages is returned for an ISO if there are no golden images.
var errNoImages = errors.New("this swdt installs nothing from an ISO")

func (s *Machines) openImages() (Images, error) {
	if s.images == nil {
		return nil, errNoImages
	}
	return s.images()
}

// The files of a VM that is made from a golden image.
const (
	firstStartCD = "config.iso"
	passwordFile = "password"
)

// over lays the VM over a golden image.
func (r *Record) over(image Golden) {
	r.Image, r.FirstStart, r.golden = image.Image, true, &image
	r.Discs = []string{r.file(firstStartCD)}
}

// fill writes the files of a new VM into its folder, which may be a staging folder.
func (r Record) fill(folder string, document config.Document) error {
	if err := writeKeys(folder, r.Name); err != nil || r.golden == nil {
		return err
	}
	keys, err := keysFor(folder, document)
	if err != nil {
		return err
	}
	if r.given != nil {
		return r.golden.WriteCD(filepath.Join(folder, firstStartCD), *r.given, keys)
	}
	password := answer.GeneratePassword()
	err = os.WriteFile(filepath.Join(folder, passwordFile), []byte(password.Reveal()+"\n"), localfile.Private)
	if err != nil {
		return fmt.Errorf("write the VM's password: %w", err)
	}
	return r.golden.WriteCD(filepath.Join(folder, firstStartCD), password, keys)
}

// usePassword reads the Administrator's password from where the node file says, if it does. The
// error is a *config.Error, and never has the password.
func (r *Record) usePassword(document config.Document) error {
	source := document.Node.Spec.Machine.PasswordFrom
	if source == nil {
		return nil
	}
	text, err := document.Secret(*source, os.LookupEnv)
	password := answer.NewPassword(text)
	if err == nil {
		err = password.Check()
	}
	if err != nil {
		return &config.Error{Problems: []config.Problem{document.Problem("spec.machine.passwordFrom", err.Error(),
			"or remove passwordFrom: swdt then generates a password")}}
	}
	r.given, r.OwnPassword = &password, true
	return nil
}

// maxSerialReads bounds how much of a serial port is searched: far more than a first start sends.
const maxSerialReads = 256

// emptyFirstCD replaces the CD of the first start by an empty one if the script on it has succeeded: it has
// the password. The VM keeps its CD drive, since a snapshot with memory loads only on
// the hardware that it was saved on. A snapshot of a VM that was never started needs the CD
// again, so it keeps the CD. The VM does not run, and the caller holds its lock.
func (s *Machines) emptyFirstCD(ctx context.Context, record *Record, driver Driver) error {
	installer, ok := driver.(Installer)
	if !record.FirstStart || !ok {
		return nil
	}
	ended, err := succeeded(ctx, installer, record.Machine)
	if err != nil || !ended {
		return err
	}
	snapshots, err := driver.Snapshots(ctx, record.Machine)
	fresh := func(saved Snapshot) bool { return !saved.Memory } // each stop after the script empties the CD
	if err != nil || slices.ContainsFunc(snapshots, fresh) {
		return err
	}
	if err := configcd.Empty(record.file(firstStartCD)); err != nil {
		return err
	}
	record.FirstStart = false
	return writeRecord(record.Folder, *record)
}

// succeeded reports whether the script of the first start has reported its success.
func succeeded(ctx context.Context, driver Installer, m Machine) (bool, error) {
	read, line := int64(0), []byte(nil)
	for range maxSerialReads {
		text, err := driver.Serial(ctx, m, read)
		if err != nil {
			return false, err
		}
		read += int64(len(text))
		for _, b := range text {
			if line = append(line, b); b != '\n' && len(line) < MaxSerial {
				continue
			}
			if mark, ok := firstboot.ParseMark(string(line)); ok && mark.State == firstboot.Exited {
				return mark.Code == 0, nil
			}
			line = line[:0]
		}
		if len(text) == 0 {
			return false, nil
		}
	}
	return false, nil
}

// password returns the path of the file with the Administrator's password; "" if the VM has
// none of its own.
func (r Record) password() string {
	if r.Image.Key == "" || r.OwnPassword {
		return ""
	}
	return r.file(passwordFile)
}

package vm

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Images finds and builds golden images for node files that name an ISO. Package golden implements
// it.
type Images interface {
	// Find returns the golden image for a node file whose spec.machine names an ISO. If the image
	// does not exist yet, Golden.Exists is false.
	Find(ctx context.Context, document config.Document, r ui.Reporter) (Golden, error)
	// Use is like Find, but first builds the image if it does not exist. No process removes the
	// image until the caller calls release.
	Use(ctx context.Context, document config.Document, r ui.Reporter) (image Golden, release func(), err error)
}

// Golden is a golden image for a new VM.
type Golden struct {
	Image  Image // all paths in Image are empty if the image does not exist
	Exists bool
	// WriteCD writes the CD for a VM's first start. The CD sets the VM's name, the Administrator's
	// password and the keys that may log in, which are lines of authorized_keys. If seal is not nil, the machine
	// replaces the password at the end of the first start, and reports the new one sealed with that key.
	WriteCD func(path string, password answer.Password, seal *rsa.PublicKey, keys []string) error
}

// WithImages sets how to open the golden images, and returns s. swdt calls open only if a node file
// names an ISO.
func (s *Machines) WithImages(open func() (Images, error)) *Machines {
	s.images = open
	return s
}

// errNoImages is returned for a node file that names an ISO if WithImages was not called.
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
	sealFile     = "password.key" // opens the password that the guest seals; until the CD is empty
)

// over makes r the record of a VM whose disk is laid over a golden image, and adds the CD for the
// first start.
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
		return r.golden.WriteCD(filepath.Join(folder, firstStartCD), *r.given, nil, keys)
	}
	password := answer.GeneratePassword()
	err = os.WriteFile(filepath.Join(folder, passwordFile), []byte(password.Reveal()+"\n"), localfile.Private)
	if err != nil {
		return fmt.Errorf("write the VM's password: %w", err)
	}
	seal, err := writeSeal(folder)
	if err != nil {
		return err
	}
	return r.golden.WriteCD(filepath.Join(folder, firstStartCD), password, seal, keys)
}

// writeSeal makes the key with which the guest seals its new password, and writes the private key into the folder.
func writeSeal(folder string) (*rsa.PublicKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, firstboot.SealBits)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, sealFile), x509.MarshalPKCS1PrivateKey(key), localfile.Private)
	}
	if err != nil {
		return nil, fmt.Errorf("make the key of the VM's password: %w", err)
	}
	return &key.PublicKey, nil
}

// keepPassword writes the password that the guest has sealed into the VM's file with the password, in place of that of
// the CD. It does nothing for a VM without a key, and if the guest has sealed something else.
func (r Record) keepPassword(sealed string) error {
	text, err := readSmall(r.file(sealFile), maxKey)
	if errors.Is(err, fs.ErrNotExist) || sealed == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the key of the VM's password: %w", err)
	}
	key, err := x509.ParsePKCS1PrivateKey(text)
	if err != nil {
		return fmt.Errorf("read the key of the VM's password: %w", err)
	}
	password, err := firstboot.Unseal(key, sealed)
	if err != nil {
		return nil //nolint:nilerr // only a guest that deceives itself sends such a text
	}
	if err := localfile.Replace(r.file(passwordFile), []byte(password.Reveal()+"\n")); err != nil {
		return fmt.Errorf("write the VM's password: %w", err)
	}
	return nil
}

// usePassword reads the Administrator's password from the source that passwordFrom of the node file
// names. Without passwordFrom it does nothing. The error is a *config.Error, whose text never
// contains the password.
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

// maxSerialReads bounds the number of reads of a serial port's output. All these reads together can
// return far more than a first start sends.
const maxSerialReads = 256

// emptyFirstCD replaces the CD of the first start by an empty CD if the script on the CD has
// succeeded, since the CD holds the password. A VM that runs gets the empty CD at once. The VM keeps its CD
// drive, since a snapshot with memory loads only on the hardware that the snapshot was saved on. The CD stays if
// there is a snapshot without memory: such a snapshot was taken before the script succeeded, and a VM that is
// restored from it needs the CD again. The caller holds the VM's lock.
func (s *Machines) emptyFirstCD(ctx context.Context, record *Record, driver Driver) error {
	installer, ok := driver.(Installer)
	if !record.FirstStart || !ok {
		return nil
	}
	end, err := scriptEnd(ctx, installer, record.Machine)
	succeeded := err == nil && end.ended && end.code == 0
	if succeeded { // maybe once more, after a snapshot of before was restored
		err = record.keepPassword(end.sealed)
	}
	if err != nil || !succeeded && !record.Prepared {
		return err
	}
	if !record.Prepared {
		record.Prepared = true
		if err := writeRecord(record.Folder, *record); err != nil {
			return err
		}
	}
	snapshots, err := driver.Snapshots(ctx, record.Machine)
	// Since the CD is not empty yet, no stop has followed the script's success. So each snapshot
	// without memory is older than the success.
	fresh := func(saved Snapshot) bool { return !saved.Memory }
	if err != nil || slices.ContainsFunc(snapshots, fresh) {
		return err
	}
	if err := configcd.Empty(record.file(firstStartCD)); err != nil {
		return err
	}
	err = installer.ChangeDisc(ctx, record.Machine, 0)
	if err != nil && !errors.Is(err, ErrStopped) {
		return err
	}
	if err := os.Remove(record.file(sealFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	record.FirstStart = false
	return writeRecord(record.Folder, *record)
}

// firstStartLimit bounds how long Await waits for the end of the script after the SSH server has answered.
const firstStartLimit = 2 * time.Minute

// awaitFirstStart waits until the script of the first start has ended, and empties its CD then. If the script does
// not report its end in time, the CD stays until the VM stops.
func (s *Machines) awaitFirstStart(ctx context.Context, name string, r ui.Reporter) error {
	said := false
	err := wait.Condition{
		Name: "the end of the first start of VM " + name, Interval: time.Second, Limit: firstStartLimit,
		Look: func(ctx context.Context) error {
			runs := false
			_, err := s.with(ctx, name, func(record Record, driver Driver) (report Report, err error) {
				runs, err = s.firstStartRuns(ctx, record, driver)
				return Report{}, err
			})
			switch {
			case err != nil:
				return wait.Stop(err)
			case !runs:
				return nil
			case !said:
				r.Step("waiting for the script of the first start of VM %s", name)
				said = true
			}
			return errors.New("it has not reported its end")
		},
	}.Wait(ctx)
	if late := (*wait.Error)(nil); errors.As(err, &late) && ctx.Err() == nil {
		return nil
	}
	return err
}

// firstStartRuns reports whether the script of the first start may still run, and empties its CD if it has succeeded.
func (s *Machines) firstStartRuns(ctx context.Context, record Record, driver Driver) (bool, error) {
	installer, ok := driver.(Installer)
	if !ok || !record.FirstStart || record.Prepared {
		return false, nil
	}
	if end, err := scriptEnd(ctx, installer, record.Machine); err != nil || !end.ended {
		return true, err
	}
	return false, s.emptyFirstCD(ctx, &record, driver)
}

// firstStartEnd is the end of the script of the first start.
type firstStartEnd struct {
	ended  bool
	code   int    // 0: success
	sealed string // the new password, sealed; "" if the guest has reported none
}

// scriptEnd returns the end of the script of the first start, as the script reported it on the serial port.
func scriptEnd(ctx context.Context, driver Installer, m Machine) (end firstStartEnd, err error) {
	read, line := int64(0), []byte(nil)
	for range maxSerialReads {
		text, err := driver.Serial(ctx, m, read)
		if err != nil {
			return end, err
		}
		read += int64(len(text))
		for _, b := range text {
			if line = append(line, b); b != '\n' && len(line) < MaxSerial {
				continue
			}
			mark, ok := firstboot.ParseMark(string(line))
			switch {
			case ok && mark.State == firstboot.Exited:
				end.ended, end.code = true, mark.Code
				return end, nil
			case ok && mark.State == firstboot.Sealed:
				end.sealed = mark.Text
			}
			line = line[:0]
		}
		if len(text) == 0 {
			return end, nil
		}
	}
	return end, nil
}

// password returns the path of the file with the Administrator's password. It returns "" if the VM
// is not made from a golden image, or if the node file names the password's source.
func (r Record) password() string {
	if r.Image.Key == "" || r.OwnPassword {
		return ""
	}
	return r.file(passwordFile)
}

package golden

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
	"github.com/swdt-dev/swdt/internal/vm/media"
)

// recipe is everything that goes into an image.
type recipe struct {
	key      string
	document config.Document
	content  Content
	edition  media.Edition
	release  answer.Release
	machine  vm.Machine       // the VM that installs; it has no folder and no discs yet
	cd       configcd.Options // the CD of the installation, without password and keys
	files    []io.Closer      // the open ISO of Windows, and the open files from which the CD is written
}

// close closes the files of the recipe.
func (c *recipe) close() {
	for _, file := range c.files {
		_ = file.Close() // the file was only read
	}
}

// installName is the computer name during an installation. Each VM that is made from the image gets
// another computer name.
const installName = "swdt-golden"

// recipeOf reads the ISOs that a node file names, and returns the recipe of its image. The caller
// must close the recipe. The error is a *config.Error if the node file does not fit the ISOs.
func (s *Images) recipeOf(ctx context.Context, document config.Document, r ui.Reporter) (*recipe, error) {
	spec := document.Node.Spec.Machine
	if spec == nil {
		return nil, &vm.NoMachineError{Node: document.Node.Metadata.Name}
	}
	if _, err := s.installer(spec.Driver); err != nil {
		return nil, err
	}
	if spec.Image.ISO == "" {
		return nil, refuse(document, "image.iso", errors.New("is missing"), "write the path of a Windows ISO")
	}
	c := &recipe{document: document, machine: vm.NewMachine(document, "")}
	c.machine.Network = vm.Network{
		Mode: vm.UserMode, Adapter: c.machine.Network.Adapter, MAC: c.machine.Network.MAC, Forwards: []vm.Forward{},
	}
	err := c.readISO(ctx, s, r)
	if err == nil {
		err = c.fillCD()
	}
	if err == nil {
		c.machine.Network.Isolated = !c.needsNetwork()
		err = c.findKey()
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// refuse returns a *config.Error about a field of spec.machine.
func refuse(document config.Document, field string, err error, remedy string) error {
	return &config.Error{Problems: []config.Problem{document.Problem("spec.machine."+field, err.Error(), remedy)}}
}

// open opens a file that a field of spec.machine.image names. The recipe's close closes the file.
func (c *recipe) open(field, path string) (*os.File, error) {
	const remedy = "write the path of a file that you can read"
	file, _, err := localfile.OpenRegular(absolute(c.document.Resolve(path)))
	if err != nil {
		return nil, refuse(c.document, "image."+field, err, remedy)
	}
	c.files = append(c.files, file)
	return file, nil
}

// absolute returns the absolute path, or the path itself if the working folder is not known.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// readISO chooses the edition on the ISO, and compares the ISO's hash with the hash in the node
// file.
func (c *recipe) readISO(ctx context.Context, s *Images, r ui.Reporter) error {
	image := c.document.Node.Spec.Machine.Image
	file, err := c.open("iso", image.ISO)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	m, err := media.Inspect(file, info.Size())
	if err == nil {
		err = installable(m)
	}
	if err != nil {
		return refuse(c.document, "image.iso", err,
			"use another ISO; `swdt vm image inspect "+file.Name()+"` shows what it holds")
	}
	if c.edition, err = m.Choose(image.Edition); err != nil {
		return refuse(c.document, "image.edition", err, "write one of its editions")
	}
	if c.release, err = releaseOf(c.edition); err != nil {
		return refuse(c.document, "image.edition", err, "use Windows Server 2019, 2022, 2025 or Windows 11")
	}
	sum, err := s.hash(ctx, file, r)
	if err != nil {
		return err
	}
	if image.SHA256 != "" && !strings.EqualFold(image.SHA256, sum.SHA256) {
		return refuse(c.document, "image.sha256", fmt.Errorf("is not the hash of %s, which is %s", file.Name(), sum.SHA256),
			"download the ISO again, or correct the hash")
	}
	if image.SHA256 == "" && sum.Known == "" {
		r.Debug("%s is not one of the media that swdt knows; its SHA-256 is %s", file.Name(), sum.SHA256)
	}
	product, _ := media.Product(c.edition)
	c.content = Content{
		Windows: product, Edition: firstOf(c.edition.DisplayName, c.edition.Name), Index: c.edition.Index,
		Build: c.edition.Version, Evaluation: c.edition.Evaluation, Language: c.edition.DefaultLanguage,
		ISO: file.Name(), SHA256: sum.SHA256,
	}
	return nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return ui.Printable(text)
		}
	}
	return ""
}

// installable returns an error for an ISO from which Windows cannot be installed.
func installable(m media.Media) error {
	if m.Kind != media.KindWindows {
		return errors.New("is no ISO of Windows")
	}
	for _, f := range m.Findings {
		if f.Severity == finding.Error {
			return fmt.Errorf("cannot be installed: %s; %s", f.What, f.Remedy)
		}
	}
	return nil
}

// releaseOf returns the release of an edition.
func releaseOf(e media.Edition) (answer.Release, error) {
	if e.InstallationType == "Client" {
		if e.Build >= 22000 {
			return answer.Windows11, nil
		}
		return "", fmt.Errorf("%q has build %d, which is older than Windows 11", e.Name, e.Build)
	}
	builds := map[int]answer.Release{17763: answer.Server2019, 20348: answer.Server2022, 26100: answer.Server2025}
	release, known := builds[e.Build]
	if !known {
		return "", fmt.Errorf("%q has build %d, for which swdt has no answers", e.Name, e.Build)
	}
	return release, nil
}

// answers returns the answers to Windows Setup without the password.
func (c *recipe) answers(computer string) answer.Options {
	spec := c.document.Node.Spec.Machine
	return answer.Options{
		Release: c.release, Core: strings.HasSuffix(c.edition.InstallationType, "Core"), Index: c.edition.Index,
		Language: c.edition.DefaultLanguage, ComputerName: computer, TimeZone: spec.TimeZone,
		ProductKey: strings.ToUpper(spec.Image.ProductKey),
	}
}

// needsNetwork reports whether Windows downloads OpenSSH while it is installed, or is one whose setup may ask for a
// network.
func (c *recipe) needsNetwork() bool {
	return c.release == answer.Windows11 || c.content.OpenSSH == "" && c.release != answer.Server2025
}

// fillCD describes the CD of the installation, and opens the files that the CD needs.
func (c *recipe) fillCD() error {
	image := c.document.Node.Spec.Machine.Image
	c.cd = configcd.Options{Answer: c.answers(installName), End: firstboot.Generalize}
	if image.Drivers != "" {
		file, err := c.open("drivers", image.Drivers)
		if err != nil {
			return err
		}
		_, version := media.Product(c.edition)
		if err := addDrivers(&c.cd, file, version); err != nil {
			return refuse(c.document, "image.drivers", err, "use the ISO of virtio-win as it is published")
		}
		c.content.Drivers = file.Name()
	}
	if image.OpenSSH != "" {
		file, err := c.open("openSSH", image.OpenSSH)
		if err != nil {
			return err
		}
		c.cd.OpenSSH, c.content.OpenSSH = fileOf(file.Name()), file.Name()
	}
	return nil
}

// Constant values for the CD whose hash goes into the key, so that the hash is the same each time.
// No VM ever sees this CD.
const (
	constantPassword = "Constant-0-password-"
	// constantKey has the form of a public key. Anyone can forge its signatures.
	constantKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

// cdTime returns the time of all files on the CD of an installation, so that equal content has equal
// bytes.
func cdTime() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// keyForm is a part of every key. Raising it makes swdt build all images anew.
const keyForm = 1

// findKey computes the key from everything that goes into the image. The CD holds the answers, the
// script, the drivers and OpenSSH.
func (c *recipe) findKey() error {
	constant := c.cd
	constant.Time, constant.Keys = cdTime(), []string{constantKey}
	constant.Answer.Password = answer.NewPassword(constantPassword)
	sum, err := configcd.Sum(constant)
	if err != nil {
		return refuse(c.document, "image", err, "correct what it names")
	}
	text, err := json.Marshal(struct {
		Form    int
		ISO, CD string
		Driver  string
		Disk    int64
		Bus     vm.DiskBus
		UEFI    vm.Firmware
	}{keyForm, c.content.SHA256, sum, c.machine.Driver, c.machine.Disk, c.machine.DiskBus, c.machine.Firmware})
	if err != nil {
		return err
	}
	hash := sha256.Sum256(text)
	c.key = hex.EncodeToString(hash[:])[:keyLength]
	return nil
}

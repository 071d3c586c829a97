package golden

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/install"
)

// Options are limits of an installation, as in install.Options.
type Options struct {
	Limits map[install.Stage]time.Duration
	Stall  time.Duration
	// Fits returns an error if the disk of a folder has too little space for this number of bytes; nil:
	// localfile.Fits.
	Fits func(folder string, bytes int64) error
}

// Bound sets the limits of all builds.
func (s *Images) Bound(o Options) { s.bounds = o }

const (
	// grown is how many bytes an installed Windows needs beyond the size of its edition: for the
	// page file, logs, and the remains of the generalisation.
	grown = 8 << 30
	// unknownSize is the assumed size, in bytes, of an edition whose ISO does not state its size.
	unknownSize = 12 << 30
	// cleanLimit bounds the removal of a build, also after Ctrl-C.
	cleanLimit = time.Minute
	// emulatedSlowness multiplies the time limits of an installation without acceleration.
	emulatedSlowness = 10
)

// The files of a build's folder, besides the files of the driver.
const (
	buildFile = "build.json" // the record of the build's VM
	cdFile    = "config.iso"
)

// EmulatedError reports a build that would run without hardware acceleration, although no option
// asks for emulation.
type EmulatedError struct{ Key string }

func (e *EmulatedError) Error() string {
	return "this machine has no hardware acceleration that works, so an installation of Windows takes many hours; " +
		"`swdt vm check` shows why, and --accel tcg or spec.machine.accelerator: tcg installs nevertheless"
}

// Build makes the golden image of a node file, unless it exists. If another swdt builds the
// same image, Build waits for it. The error is a *BuildError if the installation fails.
func (s *Images) Build(ctx context.Context, document config.Document, r ui.Reporter) (Report, error) {
	c, err := s.recipeOf(ctx, document, r)
	if err != nil {
		return Report{}, err
	}
	defer c.close()
	held, err := s.lock(ctx, c.key, lockLimit, r)
	if err != nil {
		return Report{}, err
	}
	defer held.Close()
	return s.ensure(ctx, c, r)
}

// ensure builds an image if it is missing. The caller holds the image's lock.
func (s *Images) ensure(ctx context.Context, c *recipe, r ui.Reporter) (Report, error) {
	made, err := s.get(c.key)
	switch {
	case err == nil:
		return s.report(c, made, unchanged, "nothing to do: golden image "+c.key+" exists"), nil
	case !errors.Is(err, ErrUnknown):
		return Report{}, err
	}
	if made, err = s.build(ctx, c, r); err != nil {
		return Report{}, err
	}
	return s.report(c, made, changed, fmt.Sprintf("golden image %s built in %s", c.key, ui.Seconds(made.total()))), nil
}

// build builds an image in the build folder of its key, and removes this folder afterwards.
func (s *Images) build(ctx context.Context, c *recipe, r ui.Reporter) (Manifest, error) {
	if err := s.discard(ctx, c.key, r); err != nil {
		return Manifest{}, err
	}
	b, err := s.prepared(c, r)
	if err != nil {
		return Manifest{}, err
	}
	if err := b.check(ctx); err != nil {
		return Manifest{}, err
	}
	made, err := b.run(ctx)
	interrupted := ctx.Err() != nil
	if interrupted {
		r.Info("removing the VM that installed")
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
	defer cancel()
	if left := s.discard(clean, c.key, ui.Discard{}); left != nil {
		if interrupted { // after an interrupt, the command does not print the error
			r.Warn("%v; the next build removes it, or `swdt vm image remove %s`", left, c.key)
		}
		return made, errors.Join(err, left)
	}
	return made, err
}

// build is one installation.
type build struct {
	*recipe
	images      *Images
	driver      vm.Installer
	accelerator string
	reporter    ui.Reporter
}

// prepared returns the build of a recipe. It makes nothing.
func (s *Images) prepared(c *recipe, r ui.Reporter) (*build, error) {
	c.machine.Folder = s.buildFolder(c.key)
	c.machine.Discs = []string{c.content.ISO, filepath.Join(c.machine.Folder, cdFile)}
	driver, err := s.installer(c.machine.Driver)
	return &build{recipe: c, images: s, driver: driver, reporter: r}, err
}

// check returns an error if your machine cannot run the build. It makes nothing.
func (b *build) check(ctx context.Context) (err error) {
	if err := vm.CheckProblems(b.driver.Check(ctx, b.checked()), b.reporter); err != nil {
		return err
	}
	if b.accelerator, err = b.driver.BestAccelerator(ctx, b.machine); err != nil {
		return err
	}
	if b.accelerator == vm.Emulated && b.machine.Accelerator != vm.Emulated {
		return &EmulatedError{b.key}
	}
	fits := b.images.bounds.Fits
	if fits == nil {
		fits = localfile.Fits
	}
	if err := fits(b.images.root, b.space()); err != nil {
		return err
	}
	if b.release != answer.Server2025 && b.content.OpenSSH == "" {
		b.reporter.Warn("%s gets its SSH server from Windows Update, which needs internet; to install without it, "+
			"set spec.machine.image.openSSH", b.content.Windows)
	}
	return nil
}

// checked returns the VM for the driver's check, without discs: the CD does not exist yet, and
// recipeOf has already opened the ISO.
func (b *build) checked() vm.Machine {
	m := b.machine
	m.Discs = nil
	return m
}

// installer returns the driver with this name, or an error if the driver cannot install Windows.
func (s *Images) installer(name string) (vm.Installer, error) {
	driver, err := s.machines.Driver(name)
	if err != nil {
		return nil, err
	}
	installer, ok := driver.(vm.Installer)
	if !ok || !driver.Capabilities().Installs {
		return nil, fmt.Errorf("%w; name a disk image with an installed Windows as spec.machine.image.disk",
			vm.Unsupported(name, "install Windows"))
	}
	return installer, nil
}

// space returns how many bytes of your disk a build needs.
func (c *recipe) space() int64 {
	installed := c.edition.InstalledBytes
	if installed <= 0 {
		installed = unknownSize
	}
	return min(installed+grown, c.machine.Disk)
}

// run makes the VM, installs Windows in the VM, and publishes the VM's disk as the image. The
// caller removes the VM.
func (b *build) run(ctx context.Context) (Manifest, error) {
	if err := b.makeVM(ctx); err != nil {
		return Manifest{}, fmt.Errorf("make the VM that installs: %w", err)
	}
	done, err := b.install(ctx)
	if err != nil {
		return Manifest{}, err
	}
	b.reporter.Step("keeping the golden image %s", b.key)
	return b.publish(ctx, done)
}

// makeVM makes the folder of the build with the record, the CD and the disk of its VM.
func (b *build) makeVM(ctx context.Context) error {
	b.reporter.Step("making the VM that installs %s (%s)", b.content.Edition, b.accelerator)
	if err := privateFolder(b.machine.Folder); err != nil {
		return err
	}
	cd := filepath.Join(b.machine.Folder, cdFile)
	if err := writeJSON(filepath.Join(b.machine.Folder, buildFile), b.machine); err != nil {
		return err
	}
	key, err := lostKey()
	if err != nil {
		return err
	}
	b.cd.Time, b.cd.Keys, b.cd.Answer.Password = cdTime(), []string{key}, answer.GeneratePassword()
	if err := configcd.Write(cd, b.cd); err != nil {
		return err
	}
	return b.driver.Create(ctx, b.machine)
}

// lostKey returns a public key whose private key was never stored. The script of the first logon
// needs a key; the first start of each VM replaces it.
func lostKey() (string, error) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// install starts the VM and watches the installation until the VM ends or the installation fails.
func (b *build) install(ctx context.Context) (install.Report, error) {
	if err := b.driver.Start(ctx, b.machine); err != nil {
		return install.Report{}, fmt.Errorf("start the VM that installs: %w", err)
	}
	observer, err := b.driver.Observe(ctx, b.machine)
	if err != nil {
		return install.Report{}, fmt.Errorf("watch the installation: %w", err)
	}
	g := &guest{driver: b.driver, machine: b.machine, observer: observer}
	slowness := 1
	if b.accelerator == vm.Emulated {
		slowness = emulatedSlowness
	}
	done, err := install.Watch(ctx, g, install.Options{
		Slowness: slowness, Earlier: b.earlier(),
		Limits: b.images.bounds.Limits, Stall: b.images.bounds.Stall,
	}, b.reporter)
	if err != nil {
		err = b.failed(ctx, g, err)
	} else {
		b.remember(done)
	}
	return done, errors.Join(err, observer.Close())
}

// publish makes the image from the VM's disk. The image's folder appears complete, by one rename.
func (b *build) publish(ctx context.Context, done install.Report) (Manifest, error) {
	if err := b.driver.Kill(ctx, b.machine); err != nil { // the VM has ended; Kill removes the files of the VM's run
		return Manifest{}, fmt.Errorf("end the VM that installed: %w", err)
	}
	staging, err := localfile.Stage(b.images.root, newPrefix)
	if err != nil {
		return Manifest{}, fmt.Errorf("make the image's folder: %w", err)
	}
	files, err := b.driver.Publish(ctx, b.machine, staging.Path)
	made := b.manifest(files, done)
	if err == nil {
		err = writeJSON(filepath.Join(staging.Path, manifestFile), made)
	}
	if err == nil {
		err = os.Chmod(filepath.Join(staging.Path, manifestFile), 0o444) //nolint:gosec // the folder is private
	}
	if err == nil {
		err = staging.Keep(b.images.folder(b.key))
	}
	if err != nil {
		return Manifest{}, errors.Join(fmt.Errorf("keep the golden image: %w", err), staging.Remove())
	}
	_ = os.RemoveAll(b.images.failedFolder(b.key)) // removes the remains of an earlier build that failed
	return made, nil
}

func (b *build) manifest(files vm.Published, done install.Report) Manifest {
	m := Manifest{
		Version: manifestVersion, Key: b.key, Created: time.Now().UTC().Truncate(time.Second), Content: b.content,
		Driver: b.machine.Driver, Disk: b.machine.Disk, Bus: b.machine.DiskBus, UEFI: b.machine.Firmware,
		Files: files, Accelerator: b.accelerator, Seconds: map[install.Stage]float64{},
	}
	for stage, duration := range done.Durations {
		m.Seconds[stage] = duration.Seconds()
	}
	return m
}

// discard removes the remains of a build: it ends the VM, wipes the CD with the password, and
// removes the folder. The caller holds the image's lock.
func (s *Images) discard(ctx context.Context, key string, r ui.Reporter) error {
	folder := s.buildFolder(key)
	m, err := s.buildMachine(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := os.Lstat(folder); missing != nil {
			return nil
		}
	case err != nil:
		return fmt.Errorf("remove an interrupted build: %w; if no VM of it runs, remove %s yourself", err, folder)
	default:
		r.Info("removing what an interrupted build left")
		if err := s.discardVM(ctx, m); err != nil {
			return fmt.Errorf("remove an interrupted build: %w", err)
		}
	}
	err = configcd.Wipe(filepath.Join(folder, cdFile))
	if err := errors.Join(err, os.RemoveAll(folder)); err != nil {
		return fmt.Errorf("remove the folder of a build: %w", err)
	}
	return nil
}

func (s *Images) discardVM(ctx context.Context, m vm.Machine) error {
	driver, err := s.machines.Driver(m.Driver)
	if err != nil {
		return err
	}
	if err := driver.Kill(ctx, m); err != nil {
		return err
	}
	return driver.Delete(ctx, m)
}

// buildMachine returns the VM of a build that runs or was interrupted. The error is fs.ErrNotExist
// if there is no such VM.
func (s *Images) buildMachine(key string) (vm.Machine, error) {
	m := vm.Machine{Folder: s.buildFolder(key)}
	file, err := os.Open(filepath.Join(m.Folder, buildFile))
	if err != nil {
		return m, err
	}
	defer file.Close()
	err = json.NewDecoder(io.LimitReader(file, maxManifest)).Decode(&m)
	return m, err
}

// kind returns the key under which swdt stores how long a stage of this installation took.
func (b *build) kind(stage install.Stage) string {
	return fmt.Sprintf("install %s with %s: %s", b.content.Windows, b.accelerator, stage)
}

// earlier returns how long the stages of the last installation of the same kind took.
func (b *build) earlier() map[install.Stage]time.Duration {
	took := map[install.Stage]time.Duration{}
	for _, stage := range install.Stages() {
		took[stage] = b.images.machines.Times().Of(b.kind(stage))
	}
	return took
}

// remember stores how long the stages of an installation took, for the estimates of the next one.
func (b *build) remember(done install.Report) {
	for stage, took := range done.Durations {
		b.images.machines.Times().Remember(b.kind(stage), took)
	}
}

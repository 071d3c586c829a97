package bake

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/vm"
)

// baseImage is the image on which the temporary VM is based.
type baseImage struct {
	path string // empty: swdt builds a golden image when it makes the VM
	size int64  // bytes
}

func (i baseImage) String() string {
	if i.path == "" {
		return "a golden image, which is built from the ISO first"
	}
	return i.path
}

// OptionError reports an option that cannot be used.
type OptionError struct{ Text string }

func (e *OptionError) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &OptionError{fmt.Sprintf(format, args...)} }

// Format returns the format of an image by the ending of its name.
func Format(file string) (vm.DiskFormat, error) {
	switch ending := strings.ToLower(filepath.Ext(file)); ending {
	case ".qcow2":
		return vm.QCOW2, nil
	case ".vhdx":
		return vm.VHDX, nil
	}
	return "", refuse("%s: the ending of the image's name is its format; name it NAME.qcow2 or NAME.vhdx", file)
}

// newOven checks everything that can be checked without making anything.
func newOven(ctx context.Context, doc config.Document, o Options, r ui.Reporter) (*oven, error) {
	if _, err := Format(o.File); err != nil {
		return nil, err
	}
	if err := checkImages(o.Images); err != nil {
		return nil, err
	}
	if doc.Node.Spec.Machine == nil {
		return nil, &vm.NoMachineError{Node: doc.Node.Metadata.Name}
	}
	if o.Sources == nil {
		o.Sources = source.NewSet(source.Options{})
	}
	b := &oven{doc: temporary(doc), of: doc.Node.Metadata.Name, options: o, reporter: r}
	if err := b.checkNodeFile(doc); err != nil {
		return nil, err
	}
	planned, err := o.Machines.Plan(ctx, b.doc, r)
	if err != nil {
		return nil, err
	}
	if _, err := b.answers(); err != nil {
		return nil, err
	}
	if planned.BuildsImage {
		return b, b.checkTarget(ctx, nil)
	}
	b.base.path = planned.Record.Image.Base
	info, err := os.Stat(b.base.path)
	if err != nil {
		return nil, fmt.Errorf("look at the base image: %w", err)
	}
	b.base.size = info.Size()
	return b, b.checkTarget(ctx, info)
}

func (b *oven) checkNodeFile(doc config.Document) error {
	if image := doc.Node.Spec.Machine.Image; image.Disk == "" && image.ISO == "" {
		return &config.Error{Problems: []config.Problem{doc.Problem("spec.machine.image.disk", "is missing",
			"write the path of a qcow2 image with an installed Windows, or set image.iso to install one first")}}
	}
	if b.hasKubernetes() {
		return join.ValidatePrepare(doc)
	}
	if len(b.options.Images) > 0 {
		return refuse("there is no containerd to pull %s: set spec.kubernetes.version and "+
			"spec.kubernetes.containerd.version", b.options.Images[0])
	}
	return nil
}

// hasKubernetes reports whether the node file names programs that a join would install.
func (b *oven) hasKubernetes() bool {
	k := b.doc.Node.Spec.Kubernetes
	return k.Version != "" || k.Containerd.Version != "" || k.Containerd.Source != ""
}

// checkImages refuses names that no runtime accepts.
func checkImages(images []string) error {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	for _, image := range images {
		if image == "" || strings.HasPrefix(image, "-") || strings.ContainsFunc(image, odd) {
			return refuse("%q is not the name of a container image; write it such as "+
				"mcr.microsoft.com/windows/nanoserver:ltsc2022", image)
		}
	}
	return nil
}

// checkTarget returns an error if the image must not be written to its file. base is the file of
// the base image, or nil if it does not exist yet.
func (b *oven) checkTarget(ctx context.Context, base os.FileInfo) error {
	file, err := filepath.Abs(b.options.File)
	if err != nil {
		return err
	}
	folder := filepath.Dir(file)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return refuse("%s: there is no folder %s; make it, or name a file elsewhere", b.options.File, folder)
	}
	for _, path := range []string{file, manifestFile(file)} {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return refuse("%s is not a file; name another", path)
		case base != nil && os.SameFile(info, base):
			return refuse("%s is the image from which the new one is made; name another file", path)
		case !b.options.Replace:
			return &ExistsError{path}
		}
	}
	if err := b.unused(ctx, file); err != nil {
		return err
	}
	return localfile.Fits(folder, b.base.size)
}

// ExistsError reports a file that would be replaced.
type ExistsError struct{ File string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s exists; name another file, or replace it with --yes", e.File)
}

// unused returns an error if the file is the base image of a VM's disk.
func (b *oven) unused(ctx context.Context, file string) error {
	all, err := b.options.Machines.List(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Image == file {
			return refuse("VM %s uses %s, and would lose its disk; name another file, or delete the VM with %s",
				one.Name, file, remedy.Command("vm", "delete", "-n", one.Name))
		}
	}
	return nil
}

// maxAnswers is far larger than any answer file, in bytes.
const maxAnswers = 1 << 20

// answers returns the user's answer file; nil if there is none.
func (b *oven) answers() ([]byte, error) {
	if b.options.Unattend == "" {
		return nil, nil
	}
	file, err := os.Open(b.options.Unattend)
	if err != nil {
		return nil, refuse("read the answer file: %v; name another with --unattend", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxAnswers+1))
	if err != nil {
		return nil, refuse("read the answer file: %v", err)
	}
	var document struct {
		XMLName xml.Name `xml:"urn:schemas-microsoft-com:unattend unattend"`
	}
	if len(text) > maxAnswers || xml.Unmarshal(text, &document) != nil {
		return nil, refuse("%s is not an answer file of Windows Setup: it begins with "+
			"<unattend xmlns=\"urn:schemas-microsoft-com:unattend\">", b.options.Unattend)
	}
	return text, nil
}

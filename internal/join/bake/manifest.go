package bake

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/vm"
)

// manifestVersion is the version of the manifest's format that this swdt writes.
const manifestVersion = 1

// Manifest describes an image. It has no secrets, and no paths of your machine.
type Manifest struct {
	Version int       `json:"version"` // the version of the manifest's format
	Created time.Time `json:"created"`
	Swdt    string    `json:"swdt"` // version of the swdt that made the image
	Node    string    `json:"node"` // the node's name in the node file
	Image   DiskFile  `json:"image"`
	Base    DiskFile  `json:"base"` // the image from which this image was made
	Windows Windows   `json:"windows"`
	// Kubernetes and Containerd are the versions in the node file.
	Kubernetes string `json:"kubernetes"`
	Containerd string `json:"containerd"`
	// Binaries are the programs of Kubernetes and containerd, and the programs that were pushed.
	Binaries []Binary `json:"binaries"`
	// Images are the container images that were pulled.
	Images []criclient.Pulled `json:"images"`
	// Setup has the names of the settings that were applied.
	Setup []string `json:"setup"`
}

// DiskFile is the file of a disk.
type DiskFile struct {
	File   string        `json:"file"` // the file's name, without the folder
	Format vm.DiskFormat `json:"format"`
	Size   int64         `json:"size"` // bytes
	SHA256 string        `json:"sha256"`
}

// Windows describes the version of Windows in an image, as the machine reports it.
type Windows struct {
	Product      string `json:"product"`
	Build        string `json:"build"`
	Architecture string `json:"architecture"`
}

// Binary is a program in an image.
type Binary struct {
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`    // bytes
	Version string `json:"version"` // the version that the program reports; empty: not requested, or not reported
}

// takeStock fills in the manifest: the version of Windows, the programs on the machine, the
// settings that were applied, and the container images that were pulled.
func (b *oven) takeStock(ctx context.Context) (string, error) {
	m, k := &b.manifest, b.doc.Node.Spec.Kubernetes
	m.Version, m.Created, m.Swdt = manifestVersion, time.Now().UTC().Truncate(time.Second), b.options.Swdt
	m.Node, m.Kubernetes, m.Containerd = b.of, k.Version, k.Containerd.Version
	m.Setup, m.Images = []string{}, append([]criclient.Pulled{}, m.Images...)
	for _, step := range b.setupSteps() {
		m.Setup = append(m.Setup, step.Name())
	}
	facts, err := b.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return "", fmt.Errorf("read the machine's facts: %w", err)
	}
	m.Windows = Windows{facts.GetProduct(), facts.GetBuild(), facts.GetArchitecture()}
	if m.Binaries, err = b.binaries(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("programs: %d, container images: %d", len(m.Binaries), len(m.Images)), nil
}

// binaries returns the programs in the folders of Kubernetes and containerd, and the programs that
// the node file pushes.
func (b *oven) binaries(ctx context.Context) ([]Binary, error) {
	var paths []string
	for _, folder := range []string{v1alpha1.KubernetesFolder, v1alpha1.ContainerdFolder + `\bin`} {
		entries, err := b.list(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if strings.HasSuffix(strings.ToLower(entry.GetPath()), ".exe") {
				paths = append(paths, entry.GetPath())
			}
		}
	}
	for _, p := range b.doc.Node.Spec.Kubernetes.Provisioners {
		same := func(path string) bool { return strings.EqualFold(path, p.Destination) }
		if !slices.ContainsFunc(paths, same) {
			paths = append(paths, p.Destination)
		}
	}
	request := &agentv1.InspectRequest{}
	for _, path := range paths {
		name := strings.TrimSuffix(strings.ToLower(nameOf(path)), ".exe")
		component := &agentv1.InspectComponent{Name: name, Destination: path}
		if slices.Contains([]string{"kubelet", "containerd", "kube-proxy"}, name) {
			component.AskVersion = true
		}
		request.Components = append(request.Components, component)
	}
	binaries := []Binary{}
	if len(paths) == 0 {
		return binaries, nil
	}
	reply, err := b.node.Swap.Inspect(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("look at the programs: %w", err)
	}
	for i, c := range reply.GetComponents() { // in the order of the request
		if c.GetExists() {
			binaries = append(binaries, Binary{paths[i], c.GetSha256(), c.GetSize(), c.GetVersion()})
		}
	}
	return binaries, nil
}

// completeManifest adds the hashes of the image and of its base.
func (b *oven) completeManifest(ctx context.Context, image string, format vm.DiskFormat) (err error) {
	b.reporter.Step("hashing the image")
	if b.manifest.Image, err = describe(ctx, image, format); err != nil {
		return err
	}
	b.manifest.Base, err = describe(ctx, b.base.path, vm.QCOW2)
	return err
}

func describe(ctx context.Context, path string, format vm.DiskFormat) (DiskFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return DiskFile{}, err
	}
	hash, err := localfile.Hash(ctx, path)
	if err != nil {
		return DiskFile{}, fmt.Errorf("hash %s: %w", path, err)
	}
	return DiskFile{File: filepath.Base(path), Format: format, Size: info.Size(), SHA256: hash}, nil
}

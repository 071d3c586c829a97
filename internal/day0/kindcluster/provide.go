package kindcluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/ui"
)

// mirrorFolder is the folder on a Linux node in which containerd looks for mirrors. It has a folder
// for each registry, with the mirrors of the registry in hosts.toml.
const mirrorFolder = "/etc/containerd/certs.d"

// loaded is an image that swdt has loaded into a Linux node.
type loaded struct {
	// Source is the image's ID in the container runtime of your machine.
	Source string `json:"source"`
	// Loaded is the image's ID on the node after swdt has loaded the image. Source and Loaded differ
	// if only one of them is the ID of a list of platforms.
	Loaded string `json:"loaded"`
}

// provision compares the Linux nodes of a cluster with the images and the mirrors that its
// document names.
type provision struct {
	kind   Kind
	record *record
	wanted v1alpha1.KindControlPlane
	// dryRun reports whether to collect the changes without making them.
	dryRun  bool
	changes []string
}

// provide gives the Linux nodes of a cluster the wanted images and mirrors, and removes the mirrors
// that only an earlier document named. It returns the changes that it has made or, in a dry run,
// would make. It also updates the cluster's record. Unless it is a dry run, the caller must store this
// record, even after an error.
func (c *Clusters) provide(
	ctx context.Context, one *record, wanted v1alpha1.KindControlPlane, dryRun bool, r ui.Reporter,
) ([]string, error) {
	if len(wanted.Images)+len(wanted.RegistryMirrors)+len(one.Mirrors) == 0 {
		return nil, nil
	}
	containers, err := c.kind.ListNodes(one.Name)
	if err != nil {
		return nil, failed(err, "list the containers of cluster %s", one.Name)
	}
	slices.SortFunc(containers, func(a, b nodes.Node) int { return strings.Compare(a.String(), b.String()) })
	p := &provision{kind: c.kind, record: one, wanted: wanted, dryRun: dryRun}
	for _, node := range containers {
		if err := p.mirrors(ctx, node); err != nil {
			return p.changes, err
		}
		if err := p.images(ctx, node, r); err != nil {
			return p.changes, err
		}
	}
	if !dryRun {
		one.Mirrors = nil
		for _, mirror := range wanted.RegistryMirrors {
			one.Mirrors = append(one.Mirrors, mirror.Registry)
		}
	}
	return p.changes, nil
}

// mirrors writes the files of the wanted mirrors, and removes the files of earlier mirrors that are
// not wanted any more.
func (p *provision) mirrors(ctx context.Context, node nodes.Node) error {
	var names []string
	for _, mirror := range p.wanted.RegistryMirrors {
		names = append(names, mirror.Registry)
		if err := p.mirror(ctx, node, mirror); err != nil {
			return err
		}
	}
	for _, earlier := range p.record.Mirrors {
		if slices.Contains(names, earlier) {
			continue
		}
		p.changes = append(p.changes, fmt.Sprintf("remove the mirrors of %s from %s", earlier, node))
		if p.dryRun {
			continue
		}
		if err := node.CommandContext(ctx, "rm", "-f", hostsFile(earlier)).Run(); err != nil {
			return failed(err, "remove the mirrors of %s from %s", earlier, node)
		}
	}
	return nil
}

func hostsFile(registry string) string { return path.Join(mirrorFolder, registry, "hosts.toml") }

func (p *provision) mirror(ctx context.Context, node nodes.Node, mirror v1alpha1.RegistryMirror) error {
	text, err := hosts(mirror)
	if err != nil {
		return err
	}
	if hasMirrors(ctx, node, mirror.Registry, text) {
		return nil
	}
	p.changes = append(p.changes, fmt.Sprintf("write the mirrors of %s on %s", mirror.Registry, node))
	if p.dryRun {
		return nil
	}
	if err := readsMirrors(ctx, node); err != nil {
		return err
	}
	// kind's WriteFile makes the folder.
	return failed(nodeutils.WriteFile(node, hostsFile(mirror.Registry), text),
		"write the mirrors of %s on %s", mirror.Registry, node)
}

// hasMirrors reports whether a node has the file of a registry's mirrors with this text. It also returns
// false if the file cannot be read; if the node is the cause, writing the file fails too.
func hasMirrors(ctx context.Context, node nodes.Node, registry, text string) bool {
	var there bytes.Buffer
	err := node.CommandContext(ctx, "cat", hostsFile(registry)).SetStdout(&there).Run()
	return err == nil && there.String() == text
}

// hosts returns the content of the file with which containerd uses a registry's mirrors. containerd
// tries the registry itself after all mirrors.
func hosts(mirror v1alpha1.RegistryMirror) (string, error) {
	var b strings.Builder
	b.WriteString("# written by swdt from registryMirrors of the cluster's document\n")
	for _, endpoint := range mirror.Endpoints { // containerd tries them in the order of the file
		u, err := url.Parse(endpoint)
		if err != nil {
			return "", fmt.Errorf("read the mirror of %s: %w", mirror.Registry, err)
		}
		fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", endpoint)
		if strings.Trim(u.Path, "/") != "" {
			b.WriteString("  override_path = true\n")
		}
	}
	return b.String(), nil
}

// readsMirrors returns an error if containerd on a node does not read mirrors from mirrorFolder. Older
// node images have containerd 1.x, which reads no mirrors.
func readsMirrors(ctx context.Context, node nodes.Node) error {
	var config bytes.Buffer
	if err := node.CommandContext(ctx, "containerd", "config", "dump").SetStdout(&config).Run(); err != nil {
		return failed(err, "read the settings of containerd on %s", node)
	}
	of := func(plugin string, key ...string) string {
		return containerdconfig.Text(config.Bytes(), append([]string{"plugins", plugin}, key...)...)
	}
	const plugin, plugin1 = "io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri" // of containerd 2 and 1
	folders := of(plugin, "registry", "config_path") + ":" + of(plugin1, "registry", "config_path")
	// containerd 2 reads mirrors from mirrorFolder if its settings name no folder.
	isDefault := folders == ":" && of(plugin, "snapshotter") != ""
	if isDefault || slices.Contains(strings.Split(folders, ":"), mirrorFolder) {
		return nil
	}
	return fmt.Errorf("containerd on %s reads no mirrors from %s: use the node image of a newer kind, 0.27 or later, "+
		"or remove registryMirrors", node, mirrorFolder)
}

func (p *provision) images(ctx context.Context, node nodes.Node, r ui.Reporter) error {
	for _, image := range p.wanted.Images {
		key := node.String() + " " + image
		before := p.record.Images[key]
		source, missing := p.kind.ImageID(ctx, image)
		there, err := nodeutils.ImageID(node, image) // fails if the node has no such image
		switch {
		case err == nil && before.Loaded == there && (missing != nil || before.Source == source):
			continue
		case missing != nil:
			return missing
		case err == nil && there == source:
			continue
		}
		p.changes = append(p.changes, fmt.Sprintf("load image %s into %s", image, node))
		if p.dryRun {
			continue
		}
		r.Step("loading image %s into %s", image, node)
		if err := p.load(ctx, node, image); err != nil {
			return err
		}
		if there, err = nodeutils.ImageID(node, image); err != nil {
			return failed(err, "look for image %s, which was loaded into %s", image, node)
		}
		if p.record.Images == nil {
			p.record.Images = map[string]loaded{}
		}
		p.record.Images[key] = loaded{source, there}
	}
	return nil
}

// load sends an image from the container runtime to the node, without writing it to a file.
func (p *provision) load(ctx context.Context, node nodes.Node, image string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	saved := make(chan error, 1)
	go func() {
		err := p.kind.SaveImage(ctx, image, writer)
		saved <- err
		writer.CloseWithError(err)
	}()
	err := nodeutils.LoadImageArchive(node, reader)
	select {
	case cause := <-saved:
		if cause != nil {
			return cause
		}
	default: // the node has stopped reading before the end, so end the runtime's writing too
		reader.CloseWithError(io.ErrClosedPipe)
		cancel()
		<-saved
	}
	return failed(err, "load image %s into %s", image, node)
}

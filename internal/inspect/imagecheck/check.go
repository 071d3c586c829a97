package imagecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Node is a node, or a kind of nodes.
type Node struct {
	Name       string
	Windows    string // such as 10.0.20348.2762
	Containerd string // such as 1.7.12
	// Images are names of images that the node has, with or without a digest.
	Images []string
}

// Use is an image that pods use.
type Use struct {
	Image string
	By    []string // what uses it, such as DaemonSet kube-system/kube-proxy; none if the user names the image
	// HostProcess reports that only HostProcess containers use it, which run on each Windows.
	HostProcess bool
}

// Check finds for each image and each node what the node's containerd takes, and whether its Windows runs that. The images
// are pulled one after the other: a layer of one is not new for the next. An image that cannot be read is in the report, with the
// reason. Check fails only if ctx ends.
func Check(ctx context.Context, r *Registry, nodes []Node, uses []Use, now time.Time) (Report, error) {
	return newCheck(r, nodes, now).run(ctx, uses, func() {})
}

// List is like Check for images of which a node pulls one or another, such as the tags of a repository.
func List(ctx context.Context, r *Registry, nodes []Node, uses []Use, now time.Time) (Report, error) {
	c := newCheck(r, nodes, now)
	return c.run(ctx, uses, func() {
		for _, n := range c.nodes {
			clear(n.pulled)
		}
	})
}

func newCheck(r *Registry, nodes []Node, now time.Time) *check {
	c := &check{registry: r, now: now, report: Report{Images: []ImageReport{}, Findings: []Finding{}, Unread: []Unread{}}}
	for _, n := range nodes {
		c.nodes = append(c.nodes, c.known(n))
	}
	return c
}

// check is a run of Check or List.
type check struct {
	registry *Registry
	nodes    []*known
	now      time.Time
	report   Report
	found    []Finding // about the image that is being checked
}

// known is a node with what was found out about it.
type known struct {
	Node
	host    imagefit.Build
	matcher imagefit.Matcher
	problem string // why nothing is known about the node
	// The layers by their digests: those of images that the node has, those that it gets with the images before, and those of
	// the image that is being checked.
	own, pulled map[string]bool
	fetched     []distribution.Blob
}

// run checks the images. It opens all of them first, since what the node has is not new for any of them. between is called after
// each image.
func (c *check) run(ctx context.Context, uses []Use, between func()) (Report, error) {
	all := make([]*reading, len(uses))
	for i, use := range uses {
		all[i] = c.open(ctx, use)
		if ctx.Err() != nil {
			return c.report, context.Cause(ctx)
		}
	}
	for i, one := range all {
		if err := c.image(ctx, one); ctx.Err() != nil {
			return c.report, context.Cause(ctx)
		} else if err != nil {
			c.report.Unread = append(c.report.Unread, Unread{Name: one.use.Image, Why: err.Error()})
		}
		between()
		all[i] = nil // its layers are not needed any more
	}
	c.report.sort()
	return c.report, nil
}

// open reads an image's index, and its layers if a node has the image.
func (c *check) open(ctx context.Context, use Use) *reading {
	r := &reading{use: use, layers: map[int]readLayers{}, configs: map[int]imagefit.Platform{}}
	if r.image, r.err = c.registry.Open(ctx, use.Image); r.err != nil {
		return r
	}
	for _, n := range c.nodes {
		if n.problem != "" || !n.has(r.image) {
			continue
		}
		choice, err := n.choose(ctx, r)
		if err != nil {
			continue // image returns the error
		}
		if layers, err := r.pulled(ctx, choice); err == nil {
			add(n.own, layers)
		}
	}
	return r
}

// has reports whether the node reports an image with the same digest.
func (n *known) has(i *Image) bool {
	return slices.ContainsFunc(n.Images, func(name string) bool { return strings.HasSuffix(name, "@"+i.Digest) })
}

func add(to map[string]bool, layers []distribution.Blob) {
	for _, layer := range layers {
		to[layer.Digest] = true
	}
}

func (c *check) known(n Node) *known {
	k := &known{Node: n, own: map[string]bool{}, pulled: map[string]bool{}}
	var err error
	if k.host, err = imagefit.ParseBuild(n.Windows); err != nil {
		k.problem = "the version of its Windows is not known"
		return k
	}
	if n.Containerd == "" {
		k.problem = "it has another runtime than containerd"
		return k
	}
	if k.matcher, err = imagefit.NewMatcher(n.Containerd, k.host); err != nil {
		k.problem = err.Error()
	}
	return k
}

// image checks one image on all nodes. Its findings and layers count only if it could be read for each of them.
func (c *check) image(ctx context.Context, read *reading) error {
	if read.err != nil {
		return read.err
	}
	c.found = nil
	use, image := read.use, read.image
	report := ImageReport{Image: use.Image, Digest: image.Digest, UsedBy: use.By, Manifests: []ManifestReport{}, Nodes: []NodeReport{}}
	if report.UsedBy == nil {
		report.UsedBy = []string{}
	}
	for _, n := range c.nodes {
		n.fetched = nil
		one, err := c.on(ctx, n, use, read)
		if err != nil {
			return err
		}
		report.Nodes = append(report.Nodes, one)
	}
	for i, m := range image.Manifests {
		p := m.Platform
		if p == nil {
			if config, ok := read.configs[i]; ok {
				p = &config
			}
		}
		report.Manifests = append(report.Manifests, newManifestReport(m.Digest, p))
	}
	c.report.Images = append(c.report.Images, report)
	for _, f := range c.found {
		c.report.add(f)
	}
	for _, n := range c.nodes {
		add(n.pulled, n.fetched)
	}
	return nil
}

// on checks an image on one node.
func (c *check) on(ctx context.Context, n *known, use Use, r *reading) (NodeReport, error) {
	report := NodeReport{Node: n.Name, Windows: n.Windows, Containerd: n.Containerd, Result: Unknown, Problem: n.problem}
	if n.problem != "" {
		c.find(unknownNode(n.Name, n.problem))
		return report, nil
	}
	choice, err := n.choose(ctx, r)
	if err != nil {
		return report, err
	}
	if choice.Taken < 0 {
		report.Result, report.Runs = NoMatch, imagefit.Unknown
		c.find(noMatch(use, n, r.image))
		return report, nil
	}
	p, err := r.platform(ctx, choice.Taken)
	if err != nil {
		return report, err
	}
	report.Digest, report.OSVersion = r.image.Manifests[choice.Taken].Digest, p.OSVersion
	if err := c.count(ctx, n, use, r, choice, &report); err != nil {
		return report, err
	}
	c.judge(use, n, p, &report)
	c.compare(use, n, r.image, choice, p)
	return report, nil
}

// choose returns what the node's containerd takes.
func (n *known) choose(ctx context.Context, r *reading) (imagefit.Choice, error) {
	if r.image.Plain {
		return imagefit.Choice{Taken: 0, Pulled: []int{0}}, nil
	}
	platforms := make([]*imagefit.Platform, len(r.image.Manifests))
	for i, m := range r.image.Manifests {
		platforms[i] = m.Platform
	}
	choice := n.matcher.Choose(platforms)
	if choice.Taken < 0 || platforms[choice.Taken] != nil {
		return choice, nil
	}
	config, err := r.platform(ctx, choice.Taken)
	if err == nil && !n.matcher.TakesConfig(config) {
		choice.Taken = -1
	}
	return choice, err
}

// count adds the bytes of the layers that a pull fetches. Layers that the node has are not new. If a manifest cannot be read
// that is fetched without being taken, the bytes are not known.
func (c *check) count(ctx context.Context, n *known, use Use, r *reading, choice imagefit.Choice, report *NodeReport) error {
	report.Present, report.PulledManifests = n.has(r.image), len(choice.Pulled)
	if _, err := r.layersOf(ctx, choice.Taken); err != nil {
		return err
	}
	layers, err := r.pulled(ctx, choice)
	if ctx.Err() != nil || errors.As(err, new(*boundError)) {
		return err
	}
	if err != nil {
		report.BytesProblem = err.Error()
		c.find(unreadManifest(use, n, err))
		return nil
	}
	for _, layer := range layers {
		report.PullBytes += layer.Size
		if !report.Present && !n.own[layer.Digest] && !n.pulled[layer.Digest] {
			report.NewBytes += layer.Size
		}
	}
	n.fetched = layers
	return nil
}

// judge decides whether the node's Windows runs what is taken.
func (c *check) judge(use Use, n *known, p imagefit.Platform, report *NodeReport) {
	image, err := imagefit.ParseBuild(p.OSVersion)
	switch {
	case p.OS != "" && !strings.EqualFold(p.OS, "windows"):
		report.Runs = imagefit.OtherOS
	case use.HostProcess:
		report.Runs, report.HostProcess = imagefit.Runs, true
	case err != nil:
		report.Runs = imagefit.Unknown
		c.find(noVersion(use, n, p))
	default:
		report.Runs = imagefit.Judge(n.host, image)
	}
	switch report.Runs {
	case imagefit.Runs:
		report.Result = Fits
	case imagefit.Unknown:
		report.Result = Unknown
	default:
		report.Result = Refused
		c.find(refused(use, n, p, report.Runs))
	}
	if err != nil {
		return
	}
	if report.Result == Fits && !report.HostProcess && image.Build == n.host.Build && image.Revision > n.host.Revision && n.host.Revision > 0 {
		c.find(newerRevision(use, n, p))
	}
	if release, ok := imagefit.ReleaseOf(image.Build); ok {
		report.Release = release.Name
		report.Support, report.SupportEnd = release.SupportAt(c.now), release.ExtendedEnd
		if report.Support == imagefit.Mainstream {
			report.SupportEnd = release.MainstreamEnd
		}
		if report.Support != imagefit.Mainstream && !report.HostProcess {
			c.find(unsupported(use, release, report.Support))
		}
	}
}

// compare finds choices that surprise: a manifest for an older Windows although the index has one for the node's own, an older
// patch, and manifests that are pulled without being taken.
func (c *check) compare(use Use, n *known, image *Image, choice imagefit.Choice, taken imagefit.Platform) {
	if image.Plain {
		return
	}
	own, err := imagefit.ParseBuild(taken.OSVersion)
	if err != nil {
		return
	}
	for i, m := range image.Manifests {
		if m.Platform == nil || i == choice.Taken || !n.matcher.Takes(*m.Platform) {
			continue
		}
		other, err := imagefit.ParseBuild(m.Platform.OSVersion)
		if err != nil {
			continue
		}
		if other.Build > own.Build || other.Build == own.Build && other.Revision > own.Revision {
			c.find(olderTaken(use, n, own, other))
			break
		}
	}
	if extra := len(choice.Pulled) - 1; extra > 0 {
		c.find(pullsMore(use, n, extra))
	}
}

// find adds a finding about the image that is being checked.
func (c *check) find(f Finding) { c.found = append(c.found, f) }

// add adds a finding. One that is there already, with the same text about the same image, gets the nodes.
func (r *Report) add(f Finding) {
	for i := range r.Findings {
		one := &r.Findings[i]
		if one.Rule == f.Rule && one.Image == f.Image && one.What == f.What && one.Evidence == f.Evidence {
			for _, name := range f.Nodes {
				if !slices.Contains(one.Nodes, name) {
					one.Nodes = append(one.Nodes, name)
				}
			}
			return
		}
	}
	r.Findings = append(r.Findings, f)
}

// builds returns the versions of Windows in an index, such as "10.0.17763.4851, 10.0.20348.1970"; "" if it has none.
func (i *Image) builds() string {
	var all []string
	for _, m := range i.Manifests {
		if m.Platform != nil && m.Platform.OS == "windows" && m.Platform.OSVersion != "" {
			all = append(all, m.Platform.OSVersion)
		}
	}
	if more := len(all) - mostBuilds; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:mostBuilds], ", "), more)
	}
	return strings.Join(all, ", ")
}

// mostBuilds bounds the versions that a finding names.
const mostBuilds = 6

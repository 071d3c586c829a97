package imagecheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
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

// Check finds for each image and each node what the node's containerd takes, and whether its Windows runs that. An image
// that cannot be read is in the report, with the reason. Check fails only if ctx ends.
func Check(ctx context.Context, r *Registry, nodes []Node, uses []Use, now time.Time) (Report, error) {
	c := &check{registry: r, now: now, report: Report{Images: []ImageReport{}, Findings: []Finding{}, Unread: []Unread{}}}
	for _, n := range nodes {
		c.nodes = append(c.nodes, c.known(n))
	}
	for _, use := range uses {
		if err := c.image(ctx, use); ctx.Err() != nil {
			return c.report, context.Cause(ctx)
		} else if err != nil {
			c.report.Unread = append(c.report.Unread, Unread{Name: use.Image, Why: err.Error()})
		}
	}
	c.report.sort()
	return c.report, nil
}

// check is a run of Check.
type check struct {
	registry *Registry
	nodes    []*known
	now      time.Time
	report   Report
}

// known is a node with what was found out about it.
type known struct {
	Node
	host    imagefit.Build
	matcher imagefit.Matcher
	problem string          // why nothing is known about the node
	layers  map[string]bool // by digest: the node has them, or will have them when the images before are pulled
}

func (c *check) known(n Node) *known {
	k := &known{Node: n, layers: map[string]bool{}}
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

// image checks one image on all nodes.
func (c *check) image(ctx context.Context, use Use) error {
	image, err := c.registry.Open(ctx, use.Image)
	if err != nil {
		return err
	}
	read := &reading{image: image, layers: map[int]Layers{}, configs: map[int]imagefit.Platform{}}
	report := ImageReport{Image: use.Image, Digest: image.Digest, UsedBy: use.By, Manifests: []ManifestReport{}, Nodes: []NodeReport{}}
	if report.UsedBy == nil {
		report.UsedBy = []string{}
	}
	for _, n := range c.nodes {
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
	return nil
}

// reading is an image with the parts that were read so far.
type reading struct {
	image   *Image
	layers  map[int]Layers
	configs map[int]imagefit.Platform
}

func (r *reading) layersOf(ctx context.Context, at int) (Layers, error) {
	if l, ok := r.layers[at]; ok {
		return l, nil
	}
	l, err := r.image.Layers(ctx, at)
	if err == nil {
		r.layers[at] = l
	}
	return l, err
}

// platform returns the platform of a manifest, which is that of its configuration if the index names none.
func (r *reading) platform(ctx context.Context, at int) (imagefit.Platform, error) {
	if p := r.image.Manifests[at].Platform; p != nil {
		return *p, nil
	}
	if p, ok := r.configs[at]; ok {
		return p, nil
	}
	l, err := r.layersOf(ctx, at)
	if err != nil {
		return imagefit.Platform{}, err
	}
	p, err := r.image.Config(ctx, l)
	if err == nil {
		r.configs[at] = p
	}
	return p, err
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
	if err := c.count(ctx, n, r, choice, &report); err != nil {
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

// count adds the bytes of the layers that a pull fetches. Layers that the node has are not new.
func (c *check) count(ctx context.Context, n *known, r *reading, choice imagefit.Choice, report *NodeReport) error {
	present := slices.ContainsFunc(n.Images, func(name string) bool { return strings.HasSuffix(name, "@"+r.image.Digest) })
	seen := map[string]bool{}
	for _, at := range choice.Pulled {
		l, err := r.layersOf(ctx, at)
		if err != nil {
			return err
		}
		for _, layer := range l.All {
			if seen[layer.Digest] {
				continue
			}
			seen[layer.Digest] = true
			report.PullBytes += layer.Size
			if !present && !n.layers[layer.Digest] {
				report.NewBytes += layer.Size
			}
			n.layers[layer.Digest] = true
		}
	}
	report.Present, report.PulledManifests = present, len(choice.Pulled)
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

// find adds a finding. One that is there already, with the same text about the same image, gets the nodes.
func (c *check) find(f Finding) {
	for i := range c.report.Findings {
		one := &c.report.Findings[i]
		if one.Rule == f.Rule && one.Image == f.Image && one.What == f.What && one.Evidence == f.Evidence {
			for _, name := range f.Nodes {
				if !slices.Contains(one.Nodes, name) {
					one.Nodes = append(one.Nodes, name)
				}
			}
			return
		}
	}
	c.report.Findings = append(c.report.Findings, f)
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

package imagecheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Finding is a fault of an image on nodes.
type Finding struct {
	Rule  string   `json:"rule"`
	Image string   `json:"image"` // "": it is about nodes, whatever the image
	Nodes []string `json:"nodes"`
	finding.Finding
	Source string `json:"source"` // of the fact
}

const (
	compatibility = "https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/version-compatibility"
	lifecycle     = "https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/base-image-lifecycle"
	matchers      = "https://github.com/containerd/platforms/blob/v1.0.0-rc.5/platform_windows_compat.go"
	transfer      = "https://github.com/containerd/containerd/blob/v2.4.2/internal/cri/server/images/image_pull.go"
	revisions     = "https://github.com/microsoft/Windows-Containers/issues/591"
)

func newFinding(rule string, use Use, n *known, source string, f finding.Finding) Finding {
	return Finding{Rule: rule, Image: use.Image, Nodes: []string{n.Name}, Finding: f, Source: source}
}

// noMatch is about an index of which containerd takes nothing.
func noMatch(use Use, n *known, image *Image) Finding {
	seen, remedy := "the index has "+image.builds(), "use a tag for the node's release of Windows, or keep the pods off the node: nodeSelector node.kubernetes.io/windows-build"
	if image.builds() == "" {
		seen, remedy = "the index has no manifest for Windows with a version", "use an image for Windows, or keep the pods off Windows nodes: nodeSelector kubernetes.io/os: linux"
	}
	return newFinding("no-match", use, n, matchers, finding.New(seen,
		"containerd %s on Windows %s takes none of its manifests: the pull fails with \"no match for platform in manifest\"",
		n.Containerd, n.Windows).As(finding.Error).Remedied("%s", remedy))
}

// refused is about a manifest that Windows does not run.
func refused(use Use, n *known, p imagefit.Platform, v imagefit.Verdict) Finding {
	f := finding.Finding{}
	switch v {
	case imagefit.OtherOS:
		f = finding.New("its configuration is for "+p.OS, "it is no image for Windows").Remedied("use an image for Windows")
	case imagefit.TooNew:
		f = finding.New("os.version "+p.OSVersion, "Windows %s runs no image of a newer Windows (0xc0370101)", n.Windows).
			Remedied("use an image for the node's release of Windows")
	default:
		f = finding.New("os.version "+p.OSVersion, "Windows %s runs it with Hyper-V isolation only (0xc0370101 otherwise)", n.Windows).
			Remedied("use an image for the node's release of Windows, or a RuntimeClass with Hyper-V isolation")
	}
	return newFinding("windows-refuses", use, n, compatibility, f.As(finding.Error))
}

// noVersion is about a manifest that names no version of Windows, as that of Microsoft's base image for HostProcess containers.
func noVersion(use Use, n *known, p imagefit.Platform) Finding {
	return newFinding("no-version", use, n, compatibility, finding.New(strings.TrimSpace("os.version "+p.OSVersion),
		"the image names no version of Windows: each node takes it, and only HostProcess containers run on each Windows").As(finding.Info))
}

// newerRevision is about an image with a newer patch than the node, which Windows Server 2019 and 2025 did not run across the
// updates of spring 2025. Nano Server did run, whose manifests have no feature win32k; those of other images may lack it, too.
func newerRevision(use Use, n *known, p imagefit.Platform) Finding {
	severity := finding.Info
	if slices.Contains(p.OSFeatures, "win32k") {
		severity = finding.Warning
	}
	return newFinding("newer-patch", use, n, revisions, finding.New("os.version "+p.OSVersion,
		"the image has a newer patch than Windows %s: containers of Server Core may end at their start with 0xc0370106", n.Windows).
		As(severity).Remedied("install the cumulative update of the node, or use Hyper-V isolation"))
}

// unsupported is about a base image without support, or with security updates alone.
func unsupported(use Use, r imagefit.Release, s imagefit.Support) Finding {
	f := finding.New(r.Name, "the support of its base image has ended").As(finding.Warning)
	if s == imagefit.Extended {
		f = finding.New(r.Name, "its base image gets security updates only, until %s", r.ExtendedEnd).As(finding.Info)
	}
	return Finding{Rule: "base-image-support", Image: use.Image, Nodes: []string{}, Source: lifecycle,
		Finding: f.Remedied("move the nodes to a newer release, such as %s, and then the image", newest().Name)}
}

// newest returns the newest release with base images.
func newest() imagefit.Release {
	all := imagefit.Releases()
	return all[len(all)-1]
}

// olderTaken is about an index in which another manifest fits the node better.
func olderTaken(use Use, n *known, taken, better imagefit.Build) Finding {
	what := fmt.Sprintf("takes the manifest for build %d, although the index has one for build %d", taken.Build, better.Build)
	if taken.Build == better.Build {
		what = fmt.Sprintf("takes the older patch %d, although the index has %d", taken.Revision, better.Revision)
	}
	return newFinding("older-manifest", use, n, matchers, finding.New(fmt.Sprintf("%s, not %s", taken, better),
		"containerd %s on Windows %s %s", n.Containerd, n.Windows, what).As(finding.Warning).
		Remedied("name a tag or a digest for one release of Windows"))
}

// pullsMore is about a containerd that fetches more than it takes.
func pullsMore(use Use, n *known, extra int) Finding {
	return newFinding("pulls-more", use, n, transfer, finding.New("",
		"containerd %s fetches %s that it does not use, unless use_local_image_pull is set", n.Containerd,
		finding.Several(extra, "more manifest with its layers")).As(finding.Info).
		Remedied("name a tag or a digest for one release of Windows"))
}

// unreadManifest is about a manifest that is fetched without being taken, and that could not be read.
func unreadManifest(use Use, n *known, err error) Finding {
	return newFinding("manifest-unread", use, n, transfer, finding.New(err.Error(),
		"containerd %s also fetches a manifest that cannot be read: the bytes of a pull are not known, and it may fail", n.Containerd).
		As(finding.Warning).Remedied("publish the whole index again, or name a tag or a digest for one release of Windows"))
}

// unknownNode is about a node for which nothing can be computed.
func unknownNode(name, problem string) Finding {
	return Finding{Rule: "node-unknown", Nodes: []string{name}, Source: "",
		Finding: finding.New("", "its choice is not known: %s", problem).As(finding.Warning).
			Remedied("name the versions with --windows and --containerd")}
}

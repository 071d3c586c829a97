package imagefit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Matcher takes manifests as the containerd of one node does. The node has the processor amd64, the only one of
// Kubernetes' Windows nodes.
type Matcher struct {
	host Build
	generation
}

// generation is the code of containerd's versions from since to the next generation.
type generation struct {
	since string
	// version reports whether a manifest's os.version, which is not empty, fits a host.
	version func(host Build, version string) bool
	// prefers is the order among the manifests that fit.
	prefers preference
	// plainSystem reports that only the system "windows" is taken, and not "Windows" or none.
	plainSystem bool
	// i386 reports that a manifest for 386 fits too.
	i386 bool
	// features reports that a manifest with other features of Windows than win32k does not fit.
	features bool
	// wholeConfig reports that the os.version in an image's configuration counts if its index names no platform.
	wholeConfig bool
	// pullsAll reports that a pull fetches every manifest that fits, and not only the one that is taken.
	pullsAll bool
}

// preference is an order among manifests that fit; the place in the index decides between equal ones.
type preference int

const (
	firstListed     preference = iota // amd64 before 386, nothing else
	largestRevision                   // whatever the build
	largestText                       // os.version is compared as text, so 10.0.20348.587 is before 10.0.20348.1006
)

// generations returns the generations, the newest first. Sources, each as published in the Go modules of the versions:
// platforms.Default of github.com/containerd/containerd 1.6 and 1.7 and of github.com/containerd/platforms, images.Manifest
// and images.LimitManifests, and for pullsAll the options of pullImageWithTransferService in internal/cri/server/images.
//
// A comparison by revision is in 1.7 to 2.1.5 too, but platforms.Default wraps it in platforms.Only, which hides it. So the
// order of the index decides there. TestRealContainerdTakesTheSame compares each of these functions with the real code.
func generations() []generation {
	return []generation{
		{since: "2.3.5", version: sinceGenerationBefore, prefers: largestText, features: true, wholeConfig: true, pullsAll: true},
		{since: "2.3.0", version: sinceReleaseBelow, prefers: largestText, features: true, wholeConfig: true, pullsAll: true},
		{since: "2.1.6", version: sinceReleaseBelow, prefers: largestText, wholeConfig: true, pullsAll: true},
		{since: "2.1.0", version: since2022, i386: true, wholeConfig: true, pullsAll: true},
		{since: "2.0.2", version: since2022, i386: true, wholeConfig: true},
		{since: "2.0.0", version: since2022Limited, i386: true, wholeConfig: true},
		{since: "1.7.6", version: since2022Lenient, i386: true},
		{since: "1.7.0", version: sameBuild, i386: true},
		{since: "1.6.23", version: since2022Lenient, prefers: largestRevision, plainSystem: true},
		{since: "1.6.0", version: sameBuild, prefers: largestRevision, plainSystem: true},
	}
}

// NewMatcher returns the matcher of a version of containerd, such as 1.7.12 or v2.1.6, on a host. A version without a third
// number stands for the newest release of that minor version. It is an error if the text is no version, has no second number,
// or is older than 1.6.
func NewMatcher(containerd string, host Build) (Matcher, error) {
	version := "v" + strings.TrimPrefix(containerd, "v")
	if !semver.IsValid(version) || !strings.Contains(version, ".") {
		return Matcher{}, fmt.Errorf("%.100q is no version of containerd with a minor number: write one such as 2.1 or 2.1.6", containerd)
	}
	if strings.Count(version, ".") == 1 {
		version += ".9999"
	}
	version = withoutBuilder(version)
	for _, g := range generations() {
		if semver.Compare(version, "v"+g.since) >= 0 {
			return Matcher{host, g}, nil
		}
	}
	return Matcher{}, fmt.Errorf("containerd %s is older than 1.6.0, the first version whose choice swdt knows", containerd)
}

// withoutBuilder returns a version without the suffix of the one who built it, such as -k3s1 of k3s and RKE2, which is no
// pre-release as semver has it. containerd's own pre-releases are -alpha.0, -beta.0, -rc.0 and so on.
func withoutBuilder(version string) string {
	suffix := semver.Prerelease(version)
	for _, name := range []string{"-alpha", "-beta", "-rc"} {
		if strings.HasPrefix(suffix, name) {
			return version
		}
	}
	return strings.TrimSuffix(semver.Canonical(version), suffix)
}

// Choice holds the manifests of an index that a containerd takes and fetches. The numbers are places in the index, from 0.
type Choice struct {
	Taken int // -1: nothing, and a pull fails with "no match for platform in manifest"
	// Pulled are the manifests whose layers a pull fetches, in the order of the index.
	Pulled []int
}

// Choose returns what is taken of an index. A manifest without a platform, which is nil, fits, and is the last choice. If
// it is taken, containerd reads its configuration, and TakesConfig decides.
func (m Matcher) Choose(index []*Platform) Choice {
	choice := Choice{Taken: -1}
	best := -1
	for i, p := range index {
		if p != nil && !m.Takes(*p) {
			continue
		}
		if best < 0 || m.compare(p, index[best]) < 0 {
			best = i
		}
		if m.pullsAll && (p == nil || m.isMain(*p)) {
			choice.Pulled = append(choice.Pulled, i)
		}
	}
	if !m.pullsAll && best >= 0 {
		choice.Pulled = []int{best}
	}
	if slices.Contains(choice.Pulled, best) {
		choice.Taken = best
	}
	return choice
}

// Takes reports whether a manifest of an index fits.
func (m Matcher) Takes(p Platform) bool {
	if m.plainSystem && p.OS != windows || p.system() != windows {
		return false
	}
	if !m.isMain(p) && !(m.i386 && p.is386()) {
		return false
	}
	if p.OSVersion != "" && !m.version(m.host, p.OSVersion) {
		return false
	}
	return !m.features || p.hasNoFeatures()
}

// TakesConfig reports whether an image fits whose index names no platform. p is that of the image's configuration.
func (m Matcher) TakesConfig(p Platform) bool {
	p.OS, p.OSFeatures = p.system(), slices.Compact(slices.Sorted(slices.Values(p.OSFeatures)))
	if !m.wholeConfig {
		p.Variant, p.OSVersion, p.OSFeatures = "", "", nil
	}
	return m.Takes(p)
}

// compare orders two manifests that fit.
func (m Matcher) compare(a, b *Platform) int {
	if a == nil || b == nil {
		return cmp.Compare(without(a), without(b))
	}
	switch m.prefers {
	case largestRevision:
		return cmp.Compare(revision(b.OSVersion), revision(a.OSVersion))
	case largestText:
		return strings.Compare(b.OSVersion, a.OSVersion)
	}
	return cmp.Compare(rank(*a), rank(*b))
}

// without returns 1 for a manifest without a platform.
func without(p *Platform) int {
	if p == nil {
		return 1
	}
	return 0
}

// rank returns 0 for amd64, and 1 for 386.
func rank(p Platform) int {
	if p.is386() {
		return 1
	}
	return 0
}

// isMain reports whether a manifest is for amd64.
func (m Matcher) isMain(p Platform) bool {
	name, variant := p.architecture()
	return name == amd64 && variant == ""
}

func (p Platform) is386() bool {
	name, variant := p.architecture()
	return name == i386 && variant == ""
}

// hasNoFeatures reports whether a manifest demands no feature of Windows but win32k, once.
func (p Platform) hasNoFeatures() bool {
	return len(p.OSFeatures) == 0 || len(p.OSFeatures) == 1 && p.OSFeatures[0] == "win32k"
}

// sameBuild reports whether a version begins with that of the host: 10.0.20348 fits 10.0.20348.2849, and 10.0.203480 too.
func sameBuild(host Build, version string) bool {
	return strings.HasPrefix(version, fmt.Sprintf("%d.%d.%d", host.Major, host.Minor, host.Build))
}

// since2022Lenient is since2022, with versions read in the way of containerd 1.6 and 1.7.
func since2022Lenient(host Build, version string) bool {
	return within(host, lenientVersion(version), firstCompatible)
}

// since2022Limited is since2022, with versions read in the way of containerd 2.0.0.
func since2022Limited(host Build, version string) bool {
	return within(host, limitedVersion(version), firstCompatible)
}

// since2022 takes builds from that of Windows Server 2022 up to the host's.
func since2022(host Build, version string) bool {
	return within(host, strictVersion(version), firstCompatible)
}

// sinceReleaseBelow takes builds from the long-term release that is older than the host's build: those of Windows Server
// 2022 do not fit Windows 11 25H2 (26200).
func sinceReleaseBelow(host Build, version string) bool {
	oldest := firstCompatible
	for _, build := range longTerm() {
		if build < host.Build {
			oldest = build
		}
	}
	return within(host, strictVersion(version), oldest)
}

// sinceGenerationBefore takes what Windows runs in process isolation: see Judge.
func sinceGenerationBefore(host Build, version string) bool {
	return within(host, strictVersion(version), oldestFor(host.Build))
}

// within reports whether an image's build is one from oldest to the host's, or the host's own if that is older than Windows
// Server 2022.
func within(host, image Build, oldest int) bool {
	if image.Major != host.Major || image.Minor != host.Minor {
		return false
	}
	if host.Build < firstCompatible {
		return image.Build == host.Build
	}
	return oldest <= image.Build && image.Build <= host.Build
}

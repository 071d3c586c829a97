package criclient

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Build is a version of Windows: 10.0.20348.2700.
type Build struct{ Major, Minor, Build, Revision int }

// ParseBuild reads 10.0.20348 and 10.0.20348.2700, as images have it, and
// 20348.2700, as a node's facts do.
func ParseBuild(text string) (Build, error) {
	parts := strings.Split(text, ".")
	if len(parts) == 2 {
		parts = append([]string{"10", "0"}, parts...)
	}
	numbers := [4]int{}
	for i, part := range parts {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 || len(parts) < 3 || i == len(numbers) {
			return Build{}, fmt.Errorf("%q is no version of Windows", text)
		}
		numbers[i] = number
	}
	return Build{numbers[0], numbers[1], numbers[2], numbers[3]}, nil
}

// Verdict is whether a Windows can run an image.
type Verdict string

const (
	Runs       Verdict = "yes"
	HyperVOnly Verdict = "hyper-v only" // older than process isolation allows
	TooNew     Verdict = "no, too new"  // HCS_E_IMAGE_MISMATCH, however it is isolated
	OtherOS    Verdict = "no, not windows"
	Unknown    Verdict = "unknown"
)

// firstCompatible is Windows Server 2022: before it, builds must be the same.
const firstCompatible = 20348

// longTerm are the builds of the long-term servicing channel since then.
func longTerm() []int { return []int{firstCompatible, 26100} }

// Judge says whether a host runs containers of an image: from Windows Server 2022
// on, process isolation takes images from the previous long-term build up to the
// host's own; before, only the host's own. Hyper-V isolation takes older ones too.
// Revisions need not match. HostProcess containers, which use nothing of their
// image's Windows, run whatever the verdict is.
func Judge(host, image Build) Verdict {
	switch {
	case image.Major != host.Major || image.Minor != host.Minor:
		return Unknown // no rule is known
	case image.Build > host.Build:
		return TooNew
	case image.Build >= oldestFor(host.Build):
		return Runs
	}
	return HyperVOnly
}

// oldestFor is the oldest build that a host runs with process isolation.
func oldestFor(host int) int {
	if host <= firstCompatible {
		return host
	}
	for _, build := range slices.Backward(longTerm()) {
		if build < host {
			return build
		}
	}
	return host
}

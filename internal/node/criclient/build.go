package criclient

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Build is a version of Windows: 10.0.20348.2700.
type Build struct{ Major, Minor, Build, Revision int }

// ParseBuild parses 10.0.20348 and 10.0.20348.2700, the formats of images, and
// 20348.2700, the format of a node's facts.
func ParseBuild(text string) (Build, error) {
	parts := strings.Split(text, ".")
	if len(parts) == 2 {
		parts = append([]string{"10", "0"}, parts...)
	}
	numbers := [4]int{}
	for i, part := range parts {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 || len(parts) < 3 || i == len(numbers) {
			return Build{}, fmt.Errorf("%q is not a version of Windows", text)
		}
		numbers[i] = number
	}
	return Build{numbers[0], numbers[1], numbers[2], numbers[3]}, nil
}

// Verdict is the answer to whether a Windows can run an image.
type Verdict string

const (
	Runs       Verdict = "yes"
	HyperVOnly Verdict = "hyper-v only" // too old for process isolation
	TooNew     Verdict = "no, too new"  // HCS_E_IMAGE_MISMATCH, with either isolation
	OtherOS    Verdict = "no, not windows"
	Unknown    Verdict = "unknown"
)

// firstCompatible is Windows Server 2022: before it, the builds must be equal.
const firstCompatible = 20348

// longTerm returns the builds of the long-term servicing channel since firstCompatible.
func longTerm() []int { return []int{firstCompatible, 26100} }

// Judge returns whether a node runs containers of an image. From Windows Server 2022
// on, process isolation accepts images from the previous long-term build up to the
// node's own; before, only the node's own. Hyper-V isolation accepts older ones too.
// Revisions may differ. HostProcess containers do not use their image's Windows and run
// whatever the verdict is.
func Judge(host, image Build) Verdict {
	switch {
	case image.Major != host.Major || image.Minor != host.Minor:
		return Unknown // its rule is not known
	case image.Build > host.Build:
		return TooNew
	case image.Build >= oldestFor(host.Build):
		return Runs
	}
	return HyperVOnly
}

// oldestFor returns the oldest build that a node runs with process isolation.
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

package imagefit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Build is a version of Windows, such as 10.0.20348.2849.
type Build struct{ Major, Minor, Build, Revision int }

// ParseBuild parses a version in the format of images (10.0.20348 or 10.0.20348.2849),
// or in the format of a node's facts (20348.2849).
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

// Verdict is the answer to the question whether a version of Windows can run an image.
type Verdict string

const (
	Runs       Verdict = "yes"
	HyperVOnly Verdict = "hyper-v only" // the image is too old for process isolation
	TooNew     Verdict = "no, too new"  // Windows reports HCS_E_IMAGE_MISMATCH, with either isolation
	OtherOS    Verdict = "no, not windows"
	Unknown    Verdict = "unknown"
)

// firstCompatible is the build of Windows Server 2022. On nodes with this or an older build, the
// builds of node and image must be equal.
const firstCompatible = 20348

// String returns the version in the format of images, such as 10.0.20348.2849.
func (b Build) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", b.Major, b.Minor, b.Build, b.Revision)
}

// secondCompatible is the build of Windows Server 2025.
const secondCompatible = 26100

// longTerm returns the builds of the long-term servicing channel since firstCompatible.
func longTerm() []int { return []int{firstCompatible, secondCompatible} }

// Judge returns the verdict on whether a node can run containers of an image. A node that is newer
// than Windows Server 2022 runs, with process isolation, images from the long-term build before its
// own generation up to its own build: Windows 11 25H2 (26200) is of the generation of 26100, and runs images of 20348.
// Windows Server 2022 and older nodes run only images of their own build.
// Hyper-V isolation accepts older images too. Revisions may differ. The verdict does not apply to
// HostProcess containers, which do not use the Windows of their image. The source is Microsoft's page on version
// compatibility, https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/version-compatibility.
func Judge(host, image Build) Verdict {
	switch {
	case image.Major != host.Major || image.Minor != host.Minor:
		return Unknown // the compatibility rule for this version is not known
	case image.Build > host.Build:
		return TooNew
	case image.Build >= oldestFor(host.Build):
		return Runs
	}
	return HyperVOnly
}

// oldestFor returns the oldest build of images that a node runs with process isolation.
func oldestFor(host int) int {
	if host <= firstCompatible {
		return host
	}
	all := longTerm()
	for i, build := range slices.Backward(all) {
		if build <= host {
			return all[max(i-1, 0)]
		}
	}
	return host
}

package imagefit

import (
	"fmt"
	"time"
)

// Release is a release of Windows that has base images of its own.
type Release struct {
	Name  string // as in the tags of base images, such as ltsc2022
	Build int
	// MainstreamEnd and ExtendedEnd are the last days of support of the base images, as YYYY-MM-DD. Both are "" for the
	// releases of the annual and the semi-annual channel, whose support has ended.
	MainstreamEnd, ExtendedEnd string
}

// Releases returns the releases, the oldest first. The days are those of Microsoft's page on the lifecycle of base images,
// https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/base-image-lifecycle, as of 7 August 2026.
func Releases() []Release {
	return []Release{
		{"ltsc2016", 14393, "2022-01-11", "2027-01-11"},
		{"ltsc2019", 17763, "2024-01-09", "2029-01-09"},
		{Name: "1903", Build: 18362},
		{Name: "1909", Build: 18363},
		{Name: "2004", Build: 19041},
		{Name: "20H2", Build: 19042},
		{"ltsc2022", firstCompatible, "2026-10-13", "2031-10-14"},
		{Name: "23H2", Build: 25398},
		{"ltsc2025", secondCompatible, "2029-10-09", "2034-10-10"},
	}
}

// ReleaseOf returns the release with a build; false if there is none, as for Windows 11 22H2.
func ReleaseOf(build int) (Release, bool) {
	for _, r := range Releases() {
		if r.Build == build {
			return r, true
		}
	}
	return Release{}, false
}

// ReleaseNamed returns the release with a name; false if there is none.
func ReleaseNamed(name string) (Release, bool) {
	for _, r := range Releases() {
		if r.Name == name {
			return r, true
		}
	}
	return Release{}, false
}

// Support is the state of the support of base images.
type Support string

// The states of support.
const (
	Mainstream Support = "mainstream"
	Extended   Support = "extended" // security updates alone
	Ended      Support = "ended"
)

// SupportAt returns the state of the support of the base images at a time.
func (r Release) SupportAt(now time.Time) Support {
	switch today := now.UTC().Format(time.DateOnly); {
	case today <= r.MainstreamEnd:
		return Mainstream
	case today <= r.ExtendedEnd:
		return Extended
	}
	return Ended
}

// BuildLabel returns the value of the label node.kubernetes.io/windows-build of nodes with the release, such as 10.0.20348.
func (r Release) BuildLabel() string { return fmt.Sprintf("10.0.%d", r.Build) }

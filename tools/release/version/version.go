// Package version turns what `git describe` prints into the version of a release.
package version

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version is the version of a release, or of a build between two releases.
type Version struct {
	// Semver is the semantic version without v: 1.4.0, or 1.4.1-dev.3.g0123456789ab for a build
	// three commits after 1.4.0.
	Semver string
	// Released reports whether a tag names exactly this state of the files.
	Released bool
}

// Tag returns the tag under which the version is published.
func (v Version) Tag() string { return "v" + v.Semver }

var (
	tag   = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?$`)
	after = regexp.MustCompile(`^(.*)-(\d+)-g([0-9a-f]+)$`) // a tag, and the commits since
	hash  = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
)

// Parse reads what `git describe --tags --always --dirty` prints. A build that no tag names sorts before
// the next release and after the last one.
func Parse(text string) (Version, error) {
	clean, dirty := strings.CutSuffix(text, "-dirty")
	suffix := ""
	if dirty {
		suffix = ".dirty"
	}
	if hash.MatchString(clean) {
		return Version{Semver: "0.0.0-dev.g" + clean + suffix}, nil
	}
	return parseTag(clean, suffix)
}

func parseTag(clean, suffix string) (Version, error) {
	name, commits, commit := clean, "", ""
	if found := after.FindStringSubmatch(clean); found != nil {
		name, commits, commit = found[1], found[2], found[3]
	}
	found := tag.FindStringSubmatch(name)
	if found == nil {
		return Version{}, fmt.Errorf("read the version %q: it is neither a commit nor a tag such as v1.4.0; "+
			"set VERSION to one of them", clean)
	}
	major, minor, patch, pre := found[1], found[2], found[3], found[4]
	if commits == "" && suffix == "" {
		return Version{Semver: joined(major, minor, patch, pre), Released: true}, nil
	}
	development := "dev." + cmp.Or(commits, "0")
	if commit != "" {
		development += ".g" + commit
	}
	if pre != "" {
		return Version{Semver: joined(major, minor, patch, pre+"."+development+suffix)}, nil
	}
	next, err := strconv.Atoi(patch)
	if err != nil {
		return Version{}, fmt.Errorf("read the version %q: %w", clean, err)
	}
	return Version{Semver: joined(major, minor, strconv.Itoa(next+1), development+suffix)}, nil
}

func joined(major, minor, patch, pre string) string {
	core := major + "." + minor + "." + patch
	if pre == "" {
		return core
	}
	return core + "-" + pre
}

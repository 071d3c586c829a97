// Package notes takes the notes of a release out of the changelog.
package notes

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/tools/release/version"
)

// unreleased is the heading of the changes since the last release.
const unreleased = "Unreleased"

// Of returns the section of the changelog that describes a version: for a release the one whose heading
// begins with its number, else the unreleased changes. A release without a section is an error.
func Of(changelog string, v version.Version) (string, error) {
	wanted := unreleased
	if v.Released {
		wanted = v.Semver
	}
	var section strings.Builder
	inside := false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			if inside {
				break
			}
			words := strings.Fields(heading)
			inside = len(words) > 0 && strings.TrimPrefix(words[0], "v") == wanted
			continue
		}
		if inside {
			section.WriteString(line)
		}
	}
	text := strings.TrimSpace(section.String())
	if text == "" {
		return "", fmt.Errorf("take the notes of %s out of the changelog: it has no text below the heading ## %s; "+
			"write what changed there", v.Semver, wanted)
	}
	return text + "\n", nil
}

package notes_test

import (
	"testing"

	"github.com/swdt-dev/swdt/tools/release/notes"
	"github.com/swdt-dev/swdt/tools/release/version"
)

const changelog = `# Changelog

## Unreleased

- Not yet.

## 1.4.0 (2026-12-01)

### Added

- A thing.

## v1.3.0

- Older.

## 1.2.0
`

func TestOf(t *testing.T) {
	for _, one := range []struct {
		version version.Version
		want    string
	}{
		{version.Version{Semver: "1.4.0", Released: true}, "### Added\n\n- A thing.\n"},
		{version.Version{Semver: "1.3.0", Released: true}, "- Older.\n"},
		{version.Version{Semver: "1.4.1-dev.1.gabc"}, "- Not yet.\n"},
	} {
		if got, err := notes.Of(changelog, one.version); err != nil || got != one.want {
			t.Errorf("%s: got %q, %v; want %q", one.version.Semver, got, err, one.want)
		}
	}
}

func TestReleaseWithoutASectionIsRefused(t *testing.T) {
	for _, number := range []string{"1.4", "1.4.1", "1.2.0"} {
		if got, err := notes.Of(changelog, version.Version{Semver: number, Released: true}); err == nil {
			t.Errorf("%s: got %q", number, got)
		}
	}
}

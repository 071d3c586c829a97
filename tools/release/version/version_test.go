package version_test

import (
	"testing"

	"github.com/swdt-dev/swdt/tools/release/version"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]version.Version{
		"v1.4.0":                      {Semver: "1.4.0", Released: true},
		"v1.4.0-rc.1":                 {Semver: "1.4.0-rc.1", Released: true},
		"v1.4.0-3-g0123456789ab":      {Semver: "1.4.1-dev.3.g0123456789ab"},
		"v1.4.0-rc.1-3-g0123456789ab": {Semver: "1.4.0-rc.1.dev.3.g0123456789ab"},
		"v1.4.0-dirty":                {Semver: "1.4.1-dev.0.dirty"},
		"v1.4.9-3-g0123456-dirty":     {Semver: "1.4.10-dev.3.g0123456.dirty"},
		"0123456789ab":                {Semver: "0.0.0-dev.g0123456789ab"},
		"0123456789ab-dirty":          {Semver: "0.0.0-dev.g0123456789ab.dirty"},
	} {
		if got, err := version.Parse(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestOtherTextsAreNoVersions(t *testing.T) {
	for _, text := range []string{"", "devel", "1.4.0", "v1.4", "release-7", "v1.4.0 ", "v1.4.0/../x"} {
		if got, err := version.Parse(text); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

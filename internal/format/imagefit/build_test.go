package imagefit_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		host, image string
		want        imagefit.Verdict
	}{
		// Before Windows Server 2022 only the same build.
		{"10.0.17763.6293", "10.0.17763.1", imagefit.Runs},
		{"10.0.17763.6293", "10.0.14393.1", imagefit.HyperVOnly},
		{"10.0.19042.1", "10.0.17763.1", imagefit.HyperVOnly},
		// 2022 runs 2022 only: older builds have other rules.
		{"20348.2849", "10.0.20348.1006", imagefit.Runs},
		{"20348.2849", "10.0.20348.9999", imagefit.Runs}, // revisions need not match
		{"20348.2849", "10.0.17763.6293", imagefit.HyperVOnly},
		{"20348.2849", "10.0.25398.1", imagefit.TooNew},
		{"20348.2849", "10.0.26100.1742", imagefit.TooNew},
		// 23H2 and 2025 go back to 2022.
		{"25398.1", "10.0.20348.1", imagefit.Runs},
		{"25398.1", "10.0.17763.1", imagefit.HyperVOnly},
		{"26100.1742", "10.0.20348.2849", imagefit.Runs},
		{"26100.1742", "10.0.25398.1", imagefit.Runs},
		{"26100.1742", "10.0.26100.1", imagefit.Runs},
		{"26100.1742", "10.0.17763.1", imagefit.HyperVOnly},
		// Windows 11 25H2 is of the generation of 2025, and runs images of 2022 (moby/moby#53397).
		{"26200.6901", "10.0.20348.2849", imagefit.Runs},
		{"26200.6901", "10.0.26100.6901", imagefit.Runs},
		{"26200.6901", "10.0.17763.6293", imagefit.HyperVOnly},
		{"27842.1", "10.0.26100.1", imagefit.Runs},
		{"27842.1", "10.0.25398.1", imagefit.Runs},
		// Windows 11 before 24H2 is of the generation of 2022.
		{"22631.3296", "10.0.20348.2849", imagefit.Runs},
		{"22631.3296", "10.0.17763.6293", imagefit.HyperVOnly},
		// No rule is known.
		{"20348.2849", "6.3.9600.1", imagefit.Unknown},
	} {
		host, err := imagefit.ParseBuild(c.host)
		if err != nil {
			t.Fatal(err)
		}
		image, err := imagefit.ParseBuild(c.image)
		if err != nil {
			t.Fatal(err)
		}
		if got := imagefit.Judge(host, image); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.image, c.host, got, c.want)
		}
	}
}

func TestParseBuild(t *testing.T) {
	for text, want := range map[string]imagefit.Build{
		"10.0.20348.2849": {10, 0, 20348, 2849},
		"10.0.20348":      {10, 0, 20348, 0},
		"20348.2849":      {10, 0, 20348, 2849},
	} {
		switch got, err := imagefit.ParseBuild(text); {
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case got != want:
			t.Errorf("%s: got is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "20348", "ltsc2022", "10.0.x", "10.0.-1", "10.0.1.2.3", "a.b", "10..1"} {
		if got, err := imagefit.ParseBuild(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

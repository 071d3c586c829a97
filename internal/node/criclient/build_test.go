package criclient_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/node/criclient"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		host, image string
		want        criclient.Verdict
	}{
		// Before Windows Server 2022 only the same build.
		{"10.0.17763.6293", "10.0.17763.1", criclient.Runs},
		{"10.0.17763.6293", "10.0.14393.1", criclient.HyperVOnly},
		{"10.0.19042.1", "10.0.17763.1", criclient.HyperVOnly},
		// 2022 runs 2022 only: older builds have other rules.
		{"20348.2849", "10.0.20348.1006", criclient.Runs},
		{"20348.2849", "10.0.20348.9999", criclient.Runs}, // revisions need not match
		{"20348.2849", "10.0.17763.6293", criclient.HyperVOnly},
		{"20348.2849", "10.0.25398.1", criclient.TooNew},
		{"20348.2849", "10.0.26100.1742", criclient.TooNew},
		// 23H2 and 2025 go back to 2022.
		{"25398.1", "10.0.20348.1", criclient.Runs},
		{"25398.1", "10.0.17763.1", criclient.HyperVOnly},
		{"26100.1742", "10.0.20348.2849", criclient.Runs},
		{"26100.1742", "10.0.25398.1", criclient.Runs},
		{"26100.1742", "10.0.26100.1", criclient.Runs},
		{"26100.1742", "10.0.17763.1", criclient.HyperVOnly},
		// Builds newer than 2025 run images back to 2025.
		{"27842.1", "10.0.26100.1", criclient.Runs},
		{"27842.1", "10.0.25398.1", criclient.HyperVOnly},
		// No rule is known.
		{"20348.2849", "6.3.9600.1", criclient.Unknown},
	} {
		host, err := criclient.ParseBuild(c.host)
		if err != nil {
			t.Fatal(err)
		}
		image, err := criclient.ParseBuild(c.image)
		if err != nil {
			t.Fatal(err)
		}
		if got := criclient.Judge(host, image); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.image, c.host, got, c.want)
		}
	}
}

func TestParseBuild(t *testing.T) {
	for text, want := range map[string]criclient.Build{
		"10.0.20348.2849": {10, 0, 20348, 2849},
		"10.0.20348":      {10, 0, 20348, 0},
		"20348.2849":      {10, 0, 20348, 2849},
	} {
		switch got, err := criclient.ParseBuild(text); {
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case got != want:
			t.Errorf("%s: got is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "20348", "ltsc2022", "10.0.x", "10.0.-1", "10.0.1.2.3", "a.b", "10..1"} {
		if got, err := criclient.ParseBuild(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

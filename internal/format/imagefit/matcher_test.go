package imagefit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
)

func windows(versions ...string) (all []*imagefit.Platform) {
	for _, v := range versions {
		all = append(all, &imagefit.Platform{OS: "windows", Architecture: "amd64", OSVersion: v})
	}
	return all
}

func matcher(t *testing.T, containerd, host string) imagefit.Matcher {
	t.Helper()
	b, err := imagefit.ParseBuild(host)
	if err != nil {
		t.Fatal(err)
	}
	m, err := imagefit.NewMatcher(containerd, b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Public reports and published indexes, with what containerd did or does.
func TestChoose(t *testing.T) {
	both := windows("10.0.20348.4529", "10.0.26100.7462")    // ascending, as registry.k8s.io/pause is
	newest := windows("10.0.26100.7462", "10.0.20348.4529")  // docker-library/repo-info, hello-world:nanoserver, December 2025
	ltsc2019 := windows("10.0.17763.3770")                   // containerd/containerd#6989, servercore:ltsc2019
	pause38 := windows("10.0.17763.2928", "10.0.19042.1706", // registry.k8s.io/pause:3.8
		"10.0.20348.707")
	for name, c := range map[string]struct {
		containerd, host string
		index            []*imagefit.Platform
		want             int
	}{
		// https://github.com/containerd/containerd/issues/7439
		"Windows 11 21H2 with containerd 1.6.8":            {"1.6.8", "10.0.22000.978", windows("10.0.20348.1006"), -1},
		"the same with 1.6.23":                             {"1.6.23", "10.0.22000.978", windows("10.0.20348.1006"), 0},
		"the same with 1.7.6":                              {"1.7.6", "10.0.22000.978", windows("10.0.20348.1006"), 0},
		"the same with 1.7.5":                              {"1.7.5", "10.0.22000.978", windows("10.0.20348.1006"), -1},
		"containerd/containerd#6989: 2019's image on 2022": {"1.7.12", "10.0.20348.1006", ltsc2019, -1},
		"microsoft/Windows-Containers#223: 2022's on 2019": {"1.6.4", "10.0.17763.2928", windows("10.0.20348.707"), -1},
		"2019's on 2019":                                   {"1.6.4", "10.0.17763.2928", ltsc2019, 0},
		// https://github.com/moby/moby/issues/53397, whose daemon has platforms 1.0.0-rc.4
		"Windows 11 25H2 and 2022's image with 2.3.4": {"2.3.4", "10.0.26200.6901", windows("10.0.20348.4529"), -1},
		"the same with 2.3.5":                         {"2.3.5", "10.0.26200.6901", windows("10.0.20348.4529"), 0},
		"the same with 1.7.35":                        {"1.7.35", "10.0.26200.6901", windows("10.0.20348.4529"), 0},

		"pause:3.8 on 2022":                          {"1.7.12", "10.0.20348.2849", pause38, 2},
		"pause:3.8 on 2025 with 2.4":                 {"2.4", "10.0.26100.2894", pause38, 2},
		"2025 with 1.6.22 takes its own":             {"1.6.22", "10.0.26100.2894", both, 1},
		"2025 with 1.6.27 takes the larger revision": {"1.6.27", "10.0.26100.2894", windows("10.0.26100.2894", "10.0.20348.4529"), 1},
		"2025 with 1.7.35 takes the first":           {"1.7.35", "10.0.26100.2894", both, 0},
		"and the first of the other order":           {"1.7.35", "10.0.26100.2894", newest, 0},
		"2025 with 2.0.14 takes the first":           {"2.0.14", "10.0.26100.2894", both, 0},
		"2025 with 2.1.5 takes the first":            {"2.1.5", "10.0.26100.2894", both, 0},
		"2025 with 2.1.6 takes its own":              {"2.1.6", "10.0.26100.2894", both, 1},
		"2025 with 2.1 takes its own":                {"2.1", "10.0.26100.2894", both, 1},
		"2025 with 2.2.1 takes the older patch":      {"2.2.1", "10.0.26100.2894", windows("10.0.26100.10000", "10.0.26100.2894"), 1},
		"no version is the last choice":              {"2.4.0", "10.0.26100.2894", windows("", "10.0.26100.2894"), 1},
		"in 1.6, too":                                {"1.6.27", "10.0.26100.2894", windows("", "10.0.26100.2894"), 1},
		"but in 1.7 the first one is taken":          {"1.7.35", "10.0.26100.2894", windows("", "10.0.26100.2894"), 0},
		"and until 2.1.5":                            {"2.1.5", "10.0.26100.2894", windows("", "10.0.26100.2894"), 0},
		"no version fits each host":                  {"2.4.0", "10.0.26100.2894", windows(""), 0},
		"nothing":                                    {"2.4.0", "10.0.26100.2894", nil, -1},
		"an image for Linux": {"2.4.0", "10.0.26100.2894",
			[]*imagefit.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "unknown", Architecture: "unknown"}}, -1},
	} {
		if got := matcher(t, c.containerd, c.host).Choose(c.index); got.Taken != c.want {
			t.Errorf("%s: %d is taken, want %d", name, got.Taken, c.want)
		}
	}
}

// Since 2.1, the transfer service fetches each manifest that fits.
func TestChooseWhatIsPulled(t *testing.T) {
	index := append([]*imagefit.Platform{{OS: "linux", Architecture: "amd64"}}, windows("10.0.20348.4529", "10.0.26100.7462")...)
	for containerd, want := range map[string][]int{"1.7.35": {1}, "2.0.14": {1}, "2.1.0": {1, 2}, "2.4.2": {1, 2}} {
		if diff := cmp.Diff(want, matcher(t, containerd, "10.0.26100.7462").Choose(index).Pulled); diff != "" {
			t.Errorf("%s: -want +got\n%s", containerd, diff)
		}
	}
}

func TestNewMatcherRefuses(t *testing.T) {
	for _, text := range []string{"", "1", "2", "v3", "1.5.11", "latest", "1.7.x", "v", "2.1.6.1"} {
		if _, err := imagefit.NewMatcher(text, imagefit.Build{Major: 10}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"1.6.0", "v1.7.12", "1.7.25+bottlerocket", "2.1.0-rc.1", "2.4", "3.0.0"} {
		if _, err := imagefit.NewMatcher(text, imagefit.Build{Major: 10}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// k3s and RKE2 build containerd with a suffix of their own: nodes report containerd://1.7.23-k3s2, as k3s v1.31.5+k3s1 does
// in its release notes. Such a build is not older than the release of its number; only -alpha, -beta and -rc are.
func TestSuffixesOfBuilders(t *testing.T) {
	both := windows("10.0.20348.4529", "10.0.26100.7462")
	const firstOne, ownOne = 0, 1
	for containerd, want := range map[string]int{
		"2.1.6": ownOne, "2.1.6-k3s1": ownOne, "v2.1.6-k3s1.32": ownOne, "2.1.6+azure": ownOne, "2.1.6-0ubuntu1": ownOne,
		"2.1.6-12-g1c4457e00": ownOne, "2.1.5-k3s1": firstOne, "2.1.6-rc.1": firstOne, "2.1.6-rc1": firstOne,
		"2.1.6-beta.0": firstOne, "2.1.6-alpha.0": firstOne, "2.1.6-rc.0-12-g1c4457e00": firstOne, "2.1.7-rc.0": ownOne,
	} {
		if got := matcher(t, containerd, "10.0.26100.7462").Choose(both).Taken; got != want {
			t.Errorf("%s takes %d, want %d", containerd, got, want)
		}
	}
	if _, err := imagefit.NewMatcher("1.6.0-k3s1", imagefit.Build{Major: 10}); err != nil {
		t.Error(err)
	}
}

func TestSupport(t *testing.T) {
	for _, c := range []struct {
		name, day string
		want      imagefit.Support
	}{
		{"ltsc2022", "2026-10-13", imagefit.Mainstream}, {"ltsc2022", "2026-10-14", imagefit.Extended},
		{"ltsc2022", "2031-10-15", imagefit.Ended}, {"ltsc2025", "2026-11-30", imagefit.Mainstream}, {"23H2", "2026-11-30", imagefit.Ended},
	} {
		r, ok := imagefit.ReleaseNamed(c.name)
		day, err := time.Parse(time.DateOnly, c.day)
		if got := r.SupportAt(day); !ok || err != nil || got != c.want {
			t.Errorf("%s on %s: %s, want %s (%v)", c.name, c.day, got, c.want, err)
		}
	}
	if r, ok := imagefit.ReleaseOf(20348); !ok || r.Name != "ltsc2022" || r.BuildLabel() != "10.0.20348" {
		t.Errorf("20348 is %+v", r)
	}
	if r, ok := imagefit.ReleaseOf(22631); ok {
		t.Errorf("22631 is %+v", r)
	}
}

package imagecheck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// recorded serves the published indexes of testdata, and returns a Registry that reads all images there.
func recorded(t *testing.T) (*registrytest.Registry, *imagecheck.Registry) {
	t.Helper()
	served := registrytest.Start(t)
	served.PutRecorded(t, "testdata/indexes.json")
	return served, mirrored(t, served)
}

// mirrored returns a Registry that reads all images from a server.
func mirrored(t *testing.T, served *registrytest.Registry) *imagecheck.Registry {
	t.Helper()
	host, mirror, err := imagecheck.ParseMirror("_default=http://" + served.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &imagecheck.Registry{Mirrors: map[string]imagecheck.Mirror{host: mirror}}
}

func today() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func node(windows, containerd string) imagecheck.Node {
	return imagecheck.Node{Name: "win-1", Windows: windows, Containerd: containerd}
}

// run checks images on nodes, and returns the report.
func run(t *testing.T, r *imagecheck.Registry, nodes []imagecheck.Node, uses ...imagecheck.Use) imagecheck.Report {
	t.Helper()
	report, err := imagecheck.Check(t.Context(), r, nodes, uses, today())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Published indexes on nodes, as public reports have them.
func TestPublishedIndexes(t *testing.T) {
	_, registry := recorded(t)
	for name, c := range map[string]struct {
		image, windows, containerd string
		takes                      string // os.version; "": nothing
		result                     imagecheck.Result
		rules                      []string
	}{
		"2025 takes its own": {"hello-world:nanoserver", "10.0.26100.7462", "2.4.2", "10.0.26100.7462", imagecheck.Fits,
			[]string{"pulls-more"}},
		"a client's pull fetches one": {"hello-world:nanoserver", "10.0.26100.7462", "1.7.12", "10.0.26100.7462", imagecheck.Fits, nil},
		"2022":                        {"hello-world:nanoserver", "10.0.20348.4529", "2.4.2", "10.0.20348.4529", imagecheck.Fits, []string{"base-image-support"}},
		"an older patch on the node": {"hello-world:nanoserver", "10.0.26100.2894", "1.7.12", "10.0.26100.7462", imagecheck.Fits,
			[]string{"newer-patch"}},
		"2019": {"hello-world:nanoserver", "10.0.17763.6293", "2.4.2", "", imagecheck.NoMatch, []string{"no-match"}},
		"containerd/containerd#6989": {"mcr.microsoft.com/windows/servercore:ltsc2019", "10.0.20348.1006", "1.6.4", "",
			imagecheck.NoMatch, []string{"no-match"}},
		"ltsc2019 on 2019": {"mcr.microsoft.com/windows/servercore:ltsc2019", "10.0.17763.3770", "1.6.4", "10.0.17763.3770",
			imagecheck.Fits, []string{"base-image-support"}},
		"moby/moby#53397": {"golang:1.21", "10.0.26200.6901", "2.3.4", "", imagecheck.NoMatch, []string{"no-match"}},
		"the same later": {"golang:1.21", "10.0.26200.6901", "2.3.5", "10.0.20348.1970", imagecheck.Fits,
			[]string{"base-image-support"}},
		"each version twice": {"adoptopenjdk:hotspot-windowsservercore", "10.0.17763.3770", "1.7.12", "10.0.17763.1098",
			imagecheck.Fits, []string{"base-image-support"}},
		"2025 with the pause image of 2022": {"registry.k8s.io/pause:3.8", "10.0.26100.2894", "2.1.6", "10.0.20348.707",
			imagecheck.Fits, []string{"base-image-support"}},
		"only 2019 among Linux": {"nats:latest", "10.0.26100.2894", "2.4.2", "", imagecheck.NoMatch, []string{"no-match"}},
	} {
		t.Run(name, func(t *testing.T) {
			report := run(t, registry, []imagecheck.Node{node(c.windows, c.containerd)}, imagecheck.Use{Image: c.image})
			if len(report.Images) != 1 || len(report.Unread) != 0 {
				t.Fatalf("%+v", report)
			}
			got := report.Images[0].Nodes[0]
			if got.OSVersion != c.takes || got.Result != c.result {
				t.Errorf("%q, %s; want %q, %s", got.OSVersion, got.Result, c.takes, c.result)
			}
			var rules []string
			for _, f := range report.Findings {
				rules = append(rules, f.Rule)
			}
			slices.Sort(rules)
			if diff := cmp.Diff(c.rules, rules); diff != "" {
				t.Errorf("findings: -want +got\n%s", diff)
			}
			if report.Has(finding.Error) != (c.result != imagecheck.Fits) {
				t.Errorf("an error is found: %v", report.Has(finding.Error))
			}
		})
	}
}

// put stores an index for Windows builds under an image's name. Each manifest has one layer of 1,000 bytes.
func put(t *testing.T, served *registrytest.Registry, image string, versions ...string) {
	t.Helper()
	var all []registrytest.Manifest
	for i, v := range versions {
		all = append(all, registrytest.Manifest{Platform: json.RawMessage(fmt.Sprintf(`{"os":"windows","architecture":"amd64","os.version":%q}`, v)),
			Layers: []registrytest.Layer{{Digest: fmt.Sprintf("sha256:%064x", i+1), Size: 1000}}})
	}
	repository, tag, _ := strings.Cut(strings.TrimPrefix(image, "x.test/"), ":")
	served.PutIndex(t, repository, tag, all)
}

// Server Core has trouble with a newer patch than the node's; microsoft/Windows-Containers#591.
func TestANewerPatchOfServerCore(t *testing.T) {
	_, registry := recorded(t)
	for image, want := range map[string]bool{"mcr.microsoft.com/windows/servercore:ltsc2019": true, "nats:latest": false} {
		report := run(t, registry, []imagecheck.Node{node("10.0.17763.1000", "2.4.2")}, imagecheck.Use{Image: image})
		at := slices.IndexFunc(report.Findings, func(f imagecheck.Finding) bool { return f.Rule == "newer-patch" })
		if at < 0 || report.Has(finding.Warning) != want {
			t.Errorf("%s: %+v", image, report.Findings)
		}
	}
}

func TestSurprisingChoices(t *testing.T) {
	served := registrytest.Start(t)
	put(t, served, "x.test/ascending:1", "10.0.20348.4529", "10.0.26100.7462")
	put(t, served, "x.test/patches:1", "10.0.20348.1006", "10.0.20348.587")
	registry := mirrored(t, served)
	report := run(t, registry, []imagecheck.Node{node("10.0.26100.7462", "1.7.35")}, imagecheck.Use{Image: "x.test/ascending:1"})
	const older = "containerd 1.7.35 on Windows 10.0.26100.7462 takes the manifest for build 20348, although the index has one for build 26100"
	if f := report.Findings[0]; f.Rule != "older-manifest" || f.What != older {
		t.Errorf("%+v", f)
	}
	report = run(t, registry, []imagecheck.Node{node("10.0.20348.1006", "2.1.6")}, imagecheck.Use{Image: "x.test/patches:1"})
	const patch = "containerd 2.1.6 on Windows 10.0.20348.1006 takes the older patch 587, although the index has 1006"
	if f := report.Findings[0]; f.Rule != "older-manifest" || f.What != patch {
		t.Errorf("%+v", f)
	}
}

// Layers count once, also those that another image has, and not at all if the node has them.
func TestNewBytes(t *testing.T) {
	served, registry := recorded(t)
	shared := []registrytest.Layer{{Digest: "sha256:1a092205b76ca656d8483e99445def9f0619cb3acb2688bf9a33244c43ad44ce", Size: 198873947},
		{Digest: "sha256:" + strings.Repeat("ab", 32), Size: 5_000}}
	digest := served.PutIndex(t, "team/app", "1", []registrytest.Manifest{{Layers: shared,
		Platform: json.RawMessage(`{"os":"windows","architecture":"amd64","os.version":"10.0.26100.7462"}`)}})
	uses := []imagecheck.Use{{Image: "hello-world:nanoserver"}, {Image: "x.test/team/app:1"}}
	has := node("10.0.26100.7462", "1.7.12")
	has.Name, has.Images = "win-2", []string{"x.test/team/app@" + digest, "x.test/team/app:1"}
	report := run(t, registry, []imagecheck.Node{node("10.0.26100.7462", "1.7.12"), node("10.0.26100.7462", "2.4.2"), has}, uses...)
	var got []int64
	for _, image := range report.Images {
		for _, n := range image.Nodes {
			got = append(got, n.PullBytes, n.NewBytes)
		}
	}
	twice := registrytest.Layer{Digest: "sha256:" + strings.Repeat("cd", 32), Size: 7}
	served.PutIndex(t, "team/twice", "1", []registrytest.Manifest{{Layers: []registrytest.Layer{twice, twice},
		Platform: json.RawMessage(`{"os":"windows","architecture":"amd64"}`)}})
	if n := run(t, registry, []imagecheck.Node{has}, imagecheck.Use{Image: "x.test/team/twice:1"}).Images[0].Nodes[0]; n.PullBytes != 7 {
		t.Errorf("a layer that is listed twice counts %d bytes", n.PullBytes)
	}
	const own, other = 198873947 + 1780 + 1079, 126358310 + 1803 + 1091
	want := []int64{own, own, own + other, own + other, own, 1780 + 1079, 198878947, 5000, 198878947, 5000, 198878947, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := report.Images[1].Nodes[2]; !n.Present {
		t.Error("win-2 has the image, and it is not reported")
	}
}

// An image without an index is taken whatever it is for; Windows decides.
func TestPlainImages(t *testing.T) {
	served := registrytest.Start(t)
	for tag, config := range map[string]string{
		"ltsc2022": `{"os":"windows","architecture":"amd64","os.version":"10.0.20348.4529"}`,
		"ltsc2019": `{"os":"windows","architecture":"amd64","os.version":"10.0.17763.6293"}`,
		"ltsc2025": `{"os":"windows","architecture":"amd64","os.version":"10.0.26100.2894"}`,
		"linux":    `{"os":"linux","architecture":"amd64"}`,
		"hpc":      `{"os":"windows","architecture":"amd64"}`,
	} {
		served.PutImage(t, "team/app", tag, registrytest.Manifest{Config: json.RawMessage(config)})
	}
	registry := mirrored(t, served)
	for tag, want := range map[string]imagefit.Verdict{"ltsc2022": imagefit.Runs, "ltsc2019": imagefit.HyperVOnly,
		"ltsc2025": imagefit.TooNew, "linux": imagefit.OtherOS, "hpc": imagefit.Unknown} {
		report := run(t, registry, []imagecheck.Node{node("10.0.20348.4529", "2.4.2")}, imagecheck.Use{Image: "x.test/team/app:" + tag})
		if len(report.Images) != 1 || report.Images[0].Nodes[0].Runs != want {
			t.Errorf("%s: %+v, want %s", tag, report, want)
		}
	}
	report := run(t, registry, []imagecheck.Node{node("10.0.20348.4529", "2.4.2")},
		imagecheck.Use{Image: "x.test/team/app:ltsc2025", HostProcess: true})
	if n := report.Images[0].Nodes[0]; n.Result != imagecheck.Fits || !n.HostProcess || len(report.Findings) != 0 {
		t.Errorf("HostProcess: %+v", report)
	}
}

// A child of an index without a platform has that of its configuration.
func TestAnIndexWithoutPlatforms(t *testing.T) {
	served := registrytest.Start(t)
	served.PutIndex(t, "team/app", "1", []registrytest.Manifest{{Config: json.RawMessage(`{"os":"windows","architecture":"amd64","os.version":"10.0.17763.1"}`)}})
	registry := mirrored(t, served)
	for containerd, want := range map[string]imagecheck.Result{"1.7.35": imagecheck.Refused, "2.0.14": imagecheck.NoMatch} {
		report := run(t, registry, []imagecheck.Node{node("10.0.20348.4529", containerd)}, imagecheck.Use{Image: "x.test/team/app:1"})
		if got := report.Images[0].Nodes[0].Result; got != want {
			t.Errorf("%s: %s, want %s", containerd, got, want)
		}
	}
}

func TestNodesThatAreNotKnown(t *testing.T) {
	_, registry := recorded(t)
	for _, n := range []imagecheck.Node{node("", "2.4.2"), node("10.0.20348.1", ""), node("10.0.20348.1", "1.5.1")} {
		report := run(t, registry, []imagecheck.Node{n}, imagecheck.Use{Image: "nats:latest"})
		if got := report.Images[0].Nodes[0]; got.Result != imagecheck.Unknown || got.Problem == "" || report.Findings[0].Rule != "node-unknown" {
			t.Errorf("%+v: %+v", n, got)
		}
	}
}

// A finding with the same text is one, about several nodes; another version of containerd makes another.
func TestFindingsAreGrouped(t *testing.T) {
	_, registry := recorded(t)
	nodes := []imagecheck.Node{node("10.0.17763", "2.4.2"), node("10.0.17763", "2.4.2"), node("10.0.17763", "1.7.12")}
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("win-%d", i+1)
	}
	var got [][]string
	for _, f := range run(t, registry, nodes, imagecheck.Use{Image: "hello-world:nanoserver"}).Findings {
		got = append(got, f.Nodes)
	}
	if diff := cmp.Diff([][]string{{"win-1", "win-2"}, {"win-3"}}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// A planned node has no revision that could be older than the image's.
	report := run(t, registry, []imagecheck.Node{node("10.0.17763", "2.4.2")}, imagecheck.Use{Image: "nats:latest"})
	if slices.ContainsFunc(report.Findings, func(f imagecheck.Finding) bool { return f.Rule == "newer-patch" }) {
		t.Errorf("%+v", report.Findings)
	}
}

func TestText(t *testing.T) {
	_, registry := recorded(t)
	nodes := []imagecheck.Node{node("10.0.26100.7462", "2.4.2"), node("10.0.26100.7462", "2.4.2"), node("10.0.17763.6293", "1.6.27")}
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("win-%d", i+1)
	}
	report := run(t, registry, nodes, imagecheck.Use{Image: "hello-world:nanoserver"}, imagecheck.Use{Image: "gone:1"})
	var out bytes.Buffer
	page := ui.NewPage(&out, false)
	if err := report.WriteText(page); err != nil {
		t.Fatal(err)
	}
	if err := page.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"hello-world:nanoserver  win-1, win-2  10.0.26100.7462  2.4.2       10.0.26100.7462  yes   325.2 MB  mainstream, until 2029-10-09",
		"hello-world:nanoserver  win-3         10.0.17763.6293  1.6.27      nothing          no    -         -",
		"✗ no-match", "on win-3", "seen: hello-world:nanoserver: the index has 10.0.26100.7462, 10.0.20348.4529", "· pulls-more",
		"not read: gone:1: read ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

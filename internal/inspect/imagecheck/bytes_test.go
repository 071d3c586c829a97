package imagecheck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

const (
	windows2022 = `{"os":"windows","architecture":"amd64","os.version":"10.0.20348.4529"}`
	windows2025 = `{"os":"windows","architecture":"amd64","os.version":"10.0.26100.7462"}`
)

func layer(number int, size int64) registrytest.Layer {
	return registrytest.Layer{Digest: fmt.Sprintf("sha256:%064x", number), Size: size}
}

func manifest(platform string, layers ...registrytest.Layer) registrytest.Manifest {
	return registrytest.Manifest{Platform: json.RawMessage(platform), Layers: layers}
}

// newBytes returns the new bytes of each image on the first node.
func newBytes(report imagecheck.Report) (all []int64) {
	for _, image := range report.Images {
		all = append(all, image.Nodes[0].NewBytes)
	}
	return all
}

// Layers that a node has are not new, whatever the order of the images.
func TestNewBytesOfAnyOrder(t *testing.T) {
	served := registrytest.Start(t)
	base, own, other := layer(1, 1000), layer(2, 20), layer(3, 3)
	digest := served.PutIndex(t, "team/app", "1", []registrytest.Manifest{manifest(windows2022, base, own)})
	served.PutIndex(t, "team/app", "2", []registrytest.Manifest{manifest(windows2022, base, other)})
	n := node("10.0.20348.4529", "1.7.12")
	n.Images = []string{"x.test/team/app@" + digest}
	uses := []imagecheck.Use{{Image: "x.test/team/app:1"}, {Image: "x.test/team/app:2"}}
	for _, want := range [][]int64{{0, 3}, {3, 0}} {
		if got := newBytes(run(t, mirrored(t, served), []imagecheck.Node{n}, uses...)); !slices.Equal(got, want) {
			t.Errorf("%+v: %d, want %d", uses, got, want)
		}
		slices.Reverse(uses)
	}
}

// The tags of a list are alternatives: none of them is pulled before the others.
func TestNewBytesOfAList(t *testing.T) {
	served := registrytest.Start(t)
	base := layer(1, 1000)
	digest := served.PutIndex(t, "team/app", "1", []registrytest.Manifest{manifest(windows2022, layer(9, 7), layer(4, 5))})
	served.PutIndex(t, "team/app", "2", []registrytest.Manifest{manifest(windows2022, base, layer(2, 20), layer(9, 7))})
	served.PutIndex(t, "team/app", "3", []registrytest.Manifest{manifest(windows2022, base, layer(3, 3))})
	n := node("10.0.20348.4529", "1.7.12")
	n.Images = []string{"x.test/team/app@" + digest}
	report, err := imagecheck.List(t.Context(), mirrored(t, served), []imagecheck.Node{n}, []imagecheck.Use{
		{Image: "x.test/team/app:3"}, {Image: "x.test/team/app:2"}, {Image: "x.test/team/app:1"}}, today())
	if want := []int64{1003, 1020, 0}; err != nil || !slices.Equal(newBytes(report), want) {
		t.Errorf("%d, want %d; %v", newBytes(report), want, err)
	}
}

// lack makes a registry answer 404 for a manifest.
func lack(served *registrytest.Registry, digest string) {
	served.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if !strings.HasSuffix(request.URL.Path, digest) {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	})
}

// An image that cannot be read adds neither findings nor layers to those that can.
func TestAnIncompleteImageAddsNothing(t *testing.T) {
	served := registrytest.Start(t)
	base := layer(1, 1000)
	served.PutIndex(t, "team/app", "1", []registrytest.Manifest{manifest(windows2025, layer(2, 20)), manifest(windows2022, base)})
	served.PutIndex(t, "team/app", "2", []registrytest.Manifest{manifest(windows2022, base)})
	nodes := []imagecheck.Node{node("10.0.20348.4529", "1.7.12"), node("10.0.17763.1", "1.7.12"), node("10.0.26100.7462", "1.7.12")}
	registry := mirrored(t, served)
	whole := run(t, registry, nodes, imagecheck.Use{Image: "x.test/team/app:1"})
	lack(served, whole.Images[0].Manifests[0].Digest)
	report := run(t, registry, nodes, imagecheck.Use{Image: "x.test/team/app:1"}, imagecheck.Use{Image: "x.test/team/app:2"})
	if len(report.Unread) != 1 || len(report.Images) != 1 || report.Images[0].Nodes[0].NewBytes != 1000 {
		t.Errorf("%+v", report)
	}
	for _, f := range report.Findings {
		if strings.HasSuffix(f.Image, ":1") {
			t.Errorf("a finding about an image that was not read: %+v", f)
		}
	}
}

// A containerd that fetches each manifest that fits takes the right one also if the registry lacks another.
func TestAnExtraManifestIsMissing(t *testing.T) {
	served := registrytest.Start(t)
	served.PutIndex(t, "team/app", "1", []registrytest.Manifest{manifest(windows2025, layer(1, 1000)), manifest(windows2022, layer(2, 20))})
	nodes := []imagecheck.Node{node("10.0.26100.7462", "2.4.2"), node("10.0.26100.7462", "1.7.12")}
	registry := mirrored(t, served)
	use := imagecheck.Use{Image: "x.test/team/app:1"}
	lack(served, run(t, registry, nodes, use).Images[0].Manifests[1].Digest)
	report := run(t, registry, nodes, use)
	if len(report.Images) != 1 {
		t.Fatalf("%+v", report)
	}
	got := report.Images[0].Nodes
	if n := got[0]; n.Result != imagecheck.Fits || n.OSVersion != "10.0.26100.7462" || n.BytesProblem == "" || n.PullBytes != 0 || n.NewBytes != 0 {
		t.Errorf("containerd 2.4.2: %+v", n)
	}
	if n := got[1]; n.Result != imagecheck.Fits || n.BytesProblem != "" || n.NewBytes != 1000 {
		t.Errorf("containerd 1.7.12: %+v", n)
	}
	if at := slices.IndexFunc(report.Findings, func(f imagecheck.Finding) bool { return f.Rule == "manifest-unread" }); at < 0 ||
		!report.Has(finding.Warning) || report.Has(finding.Error) {
		t.Errorf("%+v", report.Findings)
	}
	var out bytes.Buffer
	page := ui.NewPage(&out, false)
	if err := report.WriteText(page); err != nil {
		t.Fatal(err)
	}
	if err := page.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "2.4.2       10.0.26100.7462  yes   unknown"; !strings.Contains(out.String(), want) {
		t.Errorf("%q is missing in\n%s", want, out.String())
	}
}

// The bounds of an index and of its manifests are multiplied by each other: 1,000 manifests with 1,000 layers, whose digests
// are 71 bytes each. So their product has a bound of its own.
func TestTheLayersOfAnImageAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		manifests, layers int
		want              string // "": it is read
	}{
		"64 manifests":     {64, 1, ""},
		"65 manifests":     {65, 1, "a pull fetches more than 64 of its manifests"},
		"4,096 layers":     {8, 512, ""},
		"more than 4,096":  {9, 512, "its manifests have more than 4096 layers"},
		"a million layers": {1000, 1000, "its manifests have more than 4096 layers"},
	} {
		served := registrytest.Start(t)
		children, asked := map[string][]byte{}, 0
		var entries []string
		for i := range c.manifests {
			layers := make([]string, c.layers)
			for l := range layers {
				number := i*c.layers + l
				if c.manifests == 1000 {
					number = l // the texts of a million digests would be the test's own 100 MB
				}
				layers[l] = fmt.Sprintf(`{"digest":"sha256:%064x","size":1}`, number)
			}
			content := fmt.Appendf(nil, `{"schemaVersion":2,"config":{"digest":"sha256:%064x","size":1},"layers":[%s]}`, i, strings.Join(layers, ","))
			digest := fmt.Sprintf("sha256:%064x", i)
			if i < 70 {
				digest = distribution.DigestOf(content)
				children[digest] = content
			}
			entries = append(entries, fmt.Sprintf(`{"digest":%q,"size":1,"platform":%s}`, digest, windows2022))
		}
		index := `{"schemaVersion":2,"manifests":[` + strings.Join(entries, ",") + `]}`
		served.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			_, reference, ok := strings.Cut(request.URL.Path, "/manifests/")
			if !ok {
				return false
			}
			asked++
			text := []byte(index)
			if strings.HasPrefix(reference, "sha256:") {
				text = children[reference]
			}
			_, _ = w.Write(text) // it fails only if the client has gone
			return true
		})
		report := run(t, mirrored(t, served), []imagecheck.Node{node("10.0.20348.4529", "2.4.2")}, imagecheck.Use{Image: "x.test/team/app:1"})
		switch {
		case c.want == "" && (len(report.Images) != 1 || report.Images[0].Nodes[0].PullBytes != int64(c.manifests*c.layers)):
			t.Errorf("%s: %+v", name, report)
		case c.want != "" && (len(report.Unread) != 1 || !strings.Contains(report.Unread[0].Why, c.want)):
			t.Errorf("%s: %+v", name, report.Unread)
		}
		if asked > 70 {
			t.Errorf("%s: %d requests", name, asked)
		}
	}
}

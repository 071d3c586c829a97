package publish_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/publish"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/binaryset"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// publisher is a machine that publishes to a registry.
type publisher struct {
	registry *registrytest.Registry
	options  publish.Options
}

func newPublisher(t *testing.T, r *registrytest.Registry) *publisher {
	t.Helper()
	reference, err := distribution.ParseReference(r.Host + "/team/node:dev")
	if err != nil {
		t.Fatal(err)
	}
	store, err := blobs.Open(filepath.Join(t.TempDir(), "blobs"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return &publisher{r, publish.Options{Target: reference, Blobs: store}}
}

// build returns the content of a build. Two builds differ in some bytes.
func build(version string) []byte {
	content := make([]byte, 500_000)
	random := rand.NewChaCha8([32]byte{3})
	_, _ = random.Read(content)
	return slices.Insert(content, 250_000, []byte(version)...)
}

func component(t *testing.T, name string, content []byte) publish.Component {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".exe")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := source.Obtain(t.Context(), source.Request{URL: path}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	return publish.Component{Name: name, Title: name + ".exe", Version: "1.36.3", Binary: binary}
}

func (p *publisher) publish(t *testing.T, components ...publish.Component) publish.Report {
	t.Helper()
	report, err := publish.Publish(t.Context(), components, p.options, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// fetch fetches kubelet by the digest of a report, on a node that may have an earlier build.
func (p *publisher) fetch(t *testing.T, report publish.Report, held []byte, want []byte) binaryset.Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.exe")
	if err := os.WriteFile(path, held, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(held)
	repository := distribution.Open(p.options.Target.WithDigest(report.Digest), distribution.Options{})
	result, err := binaryset.Fetch(t.Context(), repository, binaryset.Request{
		Component: "kubelet", Folder: t.TempDir(),
		Held: func(_ context.Context, hash string) (string, bool) { return path, hash == hex.EncodeToString(sum[:]) },
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(result.Path)
	if err != nil || !bytes.Equal(content, want) {
		t.Fatalf("fetched %d bytes, %v; want %d", len(content), err, len(want))
	}
	return result
}

func TestANodeWithThePreviousBuildFetchesAPatch(t *testing.T) {
	p := newPublisher(t, registrytest.Start(t))
	first := p.publish(t, component(t, "kubelet", build("one")))
	if first.Result != publish.Published || len(first.Components[0].Patches) != 0 {
		t.Fatalf("the first report is %+v", first)
	}
	second := p.publish(t, component(t, "kubelet", build("two")))
	patches := second.Components[0].Patches
	if len(patches) != 1 || patches[0].FromSHA256 != first.Components[0].SHA256 || patches[0].Layer.SentBytes == 0 {
		t.Fatalf("the second report is %+v", second)
	}
	result := p.fetch(t, second, build("one"), build("two"))
	if result.Method != binaryset.MethodPatch || result.Received > 2000 {
		t.Errorf("fetched %d bytes by %s", result.Received, result.Method)
	}
	if result := p.fetch(t, second, build("another"), build("two")); result.Method != binaryset.MethodWhole {
		t.Errorf("without the base, fetched by %s", result.Method)
	}
}

// Another machine publishes the next build, and has nothing in its cache.
func TestTheBaseComesFromTheRegistry(t *testing.T) {
	r := registrytest.Start(t)
	newPublisher(t, r).publish(t, component(t, "kubelet", build("one")))
	p := newPublisher(t, r)
	if report := p.publish(t, component(t, "kubelet", build("two"))); len(report.Components[0].Patches) != 1 {
		t.Errorf("the report is %+v", report)
	}
}

func TestTheSameInputsHaveTheSameDigest(t *testing.T) {
	components := func(version string) []publish.Component {
		return []publish.Component{component(t, "kubelet", build(version)), component(t, "containerd", build("2.4.2"))}
	}
	var digests []string
	for range 2 {
		p := newPublisher(t, registrytest.Start(t))
		first := p.publish(t, components("one")...)
		turned := components("two")
		slices.Reverse(turned)
		second := p.publish(t, turned...)
		again := p.publish(t, components("two")...)
		if again.Result != publish.Unchanged || again.Digest != second.Digest || again.SentBytes != 0 {
			t.Errorf("published twice: %+v", again)
		}
		digests = append(digests, first.Digest+second.Digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("the digests are %q", digests)
	}
}

func TestAnUnchangedComponentIsNotSent(t *testing.T) {
	p := newPublisher(t, registrytest.Start(t))
	containerd := component(t, "containerd", build("2.4.2"))
	p.publish(t, component(t, "kubelet", build("one")), containerd)
	report := p.publish(t, component(t, "kubelet", build("two")), containerd)
	if c := report.Components[0]; c.Name != "containerd" || c.Layer.SentBytes != 0 || len(c.Patches) != 0 {
		t.Errorf("containerd: %+v", c)
	}
	if c := report.Components[1]; c.Layer.SentBytes == 0 || len(c.Patches) != 1 {
		t.Errorf("kubelet: %+v", c)
	}
}

func TestPatchesFromSeveralTags(t *testing.T) {
	p := newPublisher(t, registrytest.Start(t))
	for _, tag := range []string{"v1", "v2"} {
		p.options.Target = p.options.Target.WithTag(tag)
		p.publish(t, component(t, "kubelet", build(tag)))
	}
	p.options.Target = p.options.Target.WithTag("v3")
	p.options.Bases = []string{"v1", "v2"}
	report := p.publish(t, component(t, "kubelet", build("v3")))
	for _, tag := range p.options.Bases {
		if result := p.fetch(t, report, build(tag), build("v3")); result.Method != binaryset.MethodPatch {
			t.Errorf("from %s, fetched by %s", tag, result.Method)
		}
	}
	p.options.Bases = []string{"missing"}
	_, err := publish.Publish(t.Context(), []publish.Component{component(t, "kubelet", build("v4"))}, p.options, ui.Discard{})
	if !distribution.NotFound(err) {
		t.Errorf("a missing base: %v", err)
	}
}

func TestADryRunPushesNothing(t *testing.T) {
	p := newPublisher(t, registrytest.Start(t))
	p.options.DryRun = true
	report := p.publish(t, component(t, "kubelet", build("one")))
	if report.Result != publish.Planned || report.SentBytes != 0 || report.Components[0].Layer.SizeBytes == 0 {
		t.Errorf("the report is %+v", report)
	}
	for _, request := range p.registry.Requests() {
		if request.Method != http.MethodGet && request.Method != http.MethodHead {
			t.Errorf("the registry got %s %s", request.Method, request.URL.Path)
		}
	}
	p.options.DryRun = false
	if published := p.publish(t, component(t, "kubelet", build("one"))); published.Digest != report.Digest {
		t.Errorf("the digest is %s, and was planned as %s", published.Digest, report.Digest)
	}
}

func TestAnImageIsNotReplaced(t *testing.T) {
	p := newPublisher(t, registrytest.Start(t))
	p.registry.PutManifest(t, "team/node", "dev", []byte(`{"schemaVersion":2,`+
		`"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{},"layers":[]}`))
	_, err := publish.Publish(t.Context(), []publish.Component{component(t, "kubelet", build("one"))}, p.options,
		ui.Discard{})
	var other *publish.OtherArtifactError
	if !errors.As(err, &other) {
		t.Errorf("the error is %v, want a %T", err, other)
	}
}

const secret = "s3cret-passw0rd"

func TestALoginIsUsedAndNotShown(t *testing.T) {
	p := newPublisher(t, registrytest.Start(t))
	p.registry.RequireLogin("ci", secret)
	p.options.Credential = auth.StaticCredential(p.registry.Host, auth.Credential{Username: "ci", Password: secret})
	p.publish(t, component(t, "kubelet", build("one")))

	p.registry.RequireLogin("ci", "another password")
	_, err := publish.Publish(t.Context(), []publish.Component{component(t, "kubelet", build("two"))}, p.options,
		ui.Discard{})
	var status *distribution.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusUnauthorized || strings.Contains(err.Error(), secret) {
		t.Errorf("with a wrong password: %v", err)
	}
}

// A registry that refuses or loses what it is sent must not count as published.
func TestARefusedLayerIsAnError(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		p := newPublisher(t, registrytest.Start(t))
		p.registry.Intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method != method {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		})
		_, err := publish.Publish(t.Context(), []publish.Component{component(t, "kubelet", build("one"))}, p.options,
			ui.Discard{})
		var status *distribution.StatusError
		if !errors.As(err, &status) || status.Status != http.StatusForbidden {
			t.Errorf("%s: the error is %v, want a %T", method, err, status)
		}
	}
}

// A hostile registry answers with a base that is not what its manifest says.

// A registry that answers with another base than the one that was published gains an error, or a set without a patch: the
// tag, and every file outside of the cache, stays as it was, and no other server is contacted.
func TestAHostileBaseIsAnError(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	layer := func(change func(map[string]any)) func(map[string]any) {
		return func(manifest map[string]any) { change(manifest["layers"].([]any)[0].(map[string]any)) }
	}
	annotation := func(key, value string) func(map[string]any) {
		return layer(func(l map[string]any) { l["annotations"].(map[string]any)[key] = value })
	}
	endless := func(part string) registrytest.Hook {
		return func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if request.Method != http.MethodGet || !strings.Contains(request.URL.Path, part) {
				return false
			}
			for chunk := make([]byte, 1<<20); request.Context().Err() == nil; {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			return true
		}
	}
	for name, test := range map[string]struct {
		manifest  func(map[string]any) // changes that of the base
		answer    registrytest.Hook
		published bool // without the base
	}{
		"other bytes": {answer: func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if request.Method != http.MethodGet || !strings.Contains(request.URL.Path, "/blobs/") {
				return false
			}
			_, _ = w.Write(make([]byte, 1<<20))
			return true
		}},
		"a manifest without end": {answer: endless("/manifests/")},
		"a layer without end":    {answer: endless("/blobs/")},
		"a manifest of another digest": {answer: func(w http.ResponseWriter, request *http.Request, next http.Handler) bool {
			if request.Method != http.MethodGet || !strings.Contains(request.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write([]byte(`{"schemaVersion":2}`))
			return true
		}},
		"a layer elsewhere": {answer: func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if request.Method != http.MethodGet || !strings.Contains(request.URL.Path, "/blobs/") {
				return false
			}
			http.Redirect(w, request, other.URL+"/layer", http.StatusTemporaryRedirect)
			return true
		}},
		"a file out of the folder":       {manifest: annotation("org.opencontainers.image.title", "../../kubelet.exe")},
		"a file out of Windows' folder":  {manifest: annotation("org.opencontainers.image.title", `..\kubelet.exe`)},
		"a file that commands terminals": {manifest: annotation("org.opencontainers.image.title", "\x1b[2Jkubelet.exe")},
		"a layer that is negative":       {manifest: layer(func(l map[string]any) { l["size"] = -1 })},
		"a layer that is huge":           {manifest: layer(func(l map[string]any) { l["size"] = int64(1) << 50 })},
		"a digest that is a path":        {manifest: layer(func(l map[string]any) { l["digest"] = "sha256:../../../etc/passwd" })},
		// The field urls of foreign layers is not read.
		"a foreign layer": {manifest: layer(func(l map[string]any) { l["urls"] = []string{other.URL + "/foreign"} }), published: true},
	} {
		t.Run(name, func(t *testing.T) {
			elsewhere.Store(0)
			r := registrytest.Start(t)
			first := newPublisher(t, r)
			before := first.publish(t, component(t, "kubelet", build("one"))).Digest
			if test.manifest != nil {
				before = changeManifest(t, r, test.manifest)
			}
			second := newPublisher(t, r)
			binary := component(t, "kubelet", build("two"))
			if test.answer != nil {
				r.Intercept(test.answer)
			}
			_, err := publish.Publish(t.Context(), []publish.Component{binary}, second.options, ui.Discard{})
			if published := err == nil; published != test.published {
				t.Errorf("the error is %v", err)
			}
			r.Intercept(nil)
			if _, now := manifestOf(t, r); (now != before) != test.published {
				t.Errorf("the tag has %s now, and had %s", now, before)
			}
			if name != "a layer elsewhere" && elsewhere.Load() > 0 {
				t.Errorf("another server had %d requests", elsewhere.Load())
			}
			if err := filepath.WalkDir(filepath.Dir(second.options.Blobs.Folder()), func(path string, _ fs.DirEntry, err error) error {
				if filepath.Ext(path) == ".exe" {
					t.Errorf("it has made %s", path)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// manifestOf returns the manifest of the tag, and its digest.
func manifestOf(t *testing.T, r *registrytest.Registry) (content []byte, digest string) {
	t.Helper()
	response, err := http.Get("http://" + r.Host + "/v2/team/node/manifests/dev") //nolint:noctx // of this process
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if content, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return content, "sha256:" + hex.EncodeToString(sum[:])
}

// changeManifest changes the manifest of the tag, and returns its digest.
func changeManifest(t *testing.T, r *registrytest.Registry, change func(map[string]any)) string {
	t.Helper()
	content, _ := manifestOf(t, r)
	var manifest map[string]any
	if err := json.Unmarshal(content, &manifest); err != nil {
		t.Fatal(err)
	}
	change(manifest)
	content, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return r.PutManifest(t, "team/node", "dev", content)
}

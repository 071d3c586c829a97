package control_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/publish"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// shop is a registry with the sets of one publisher.
type shop struct {
	*registrytest.Registry
	t       *testing.T
	options publish.Options
}

func newShop(t *testing.T) *shop {
	s := &shop{Registry: registrytest.Start(t), t: t}
	var err error
	if s.options.Target, err = distribution.ParseReference(s.Host + "/team/node:dev"); err != nil {
		t.Fatal(err)
	}
	if s.options.Blobs, err = blobs.Open(filepath.Join(t.TempDir(), "blobs"), 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// publish publishes a kubelet, with a patch from the one before, and returns the report.
func (s *shop) publish(kubelet []byte) publish.Report {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "kubelet.exe")
	if err := os.WriteFile(path, kubelet, 0o600); err != nil {
		s.t.Fatal(err)
	}
	binary, err := source.Obtain(s.t.Context(), source.Request{URL: path}, ui.Discard{})
	if err != nil {
		s.t.Fatal(err)
	}
	report, err := publish.Publish(s.t.Context(), []publish.Component{{Name: "kubelet", Title: "kubelet.exe",
		Binary: binary}}, s.options, ui.Discard{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Sent()
	s.Requests()
	return report
}

// content returns the content that brings the set of a report to the nodes, by its digest.
func (s *shop) content(r publish.Report) fleetv1.Content {
	return contentOf("oci://"+s.Host+"/team/node@"+r.Digest, r.Components[0].SHA256)
}

func large(version string, fault simulated.Fault) []byte {
	return simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: version, Fault: fault, Size: 2 << 20})
}

// Nodes get the first build of a set whole, and the next one as a patch of what is installed on them.
// Their caches are empty each time.
func TestNodesFetchPatchesFromARegistry(t *testing.T) {
	shop := newShop(t)
	all := machines(t, 3)
	first, second := large("v1.37.2", ""), large("v1.37.3", "")
	roll := func(content fleetv1.Content) (sent int64) {
		t.Helper()
		for _, m := range all { // each machine has its own cache
			s := newStore(t.Context(), t, []*machine{m})
			s.settle(fleetv1.NodeRolloutSpec{Content: content, Health: fleetv1.NodeHealth{Settle: "1ms"}},
				rollout.StateComplete)
			s.stop()
		}
		return shop.Sent() / int64(len(all))
	}
	whole := shop.publish(first)
	if sent := roll(shop.content(whole)); sent < whole.Components[0].Layer.SizeBytes {
		t.Errorf("a node fetched %d bytes of the first build, want the layer's %d", sent,
			whole.Components[0].Layer.SizeBytes)
	}
	report := shop.publish(second)
	patch, manifest := report.Components[0].Patches[0].Layer.SizeBytes, int64(4096)
	if sent := roll(shop.content(report)); sent > patch+manifest {
		t.Errorf("a node fetched %d bytes of the second build, want the patch's %d and a manifest", sent, patch)
	}
	for _, m := range all {
		if !m.runs(second) {
			t.Errorf("%s does not run the second build", m.Name)
		}
	}
}

// The login of a private registry is the pull secret of the pod. Without it, the node stays as it is, and reports
// what it lacks; when the secret appears, the order goes on.
func TestAPullSecretIsUsed(t *testing.T) {
	shop := newShop(t)
	wanted := large("v1.37.2", "")
	content := shop.content(shop.publish(wanted))
	shop.RequireLogin("fleet", "s3cret")
	m := newMachine(t, "w0")
	var asked atomic.Bool
	shop.Intercept(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		asked.Store(true) // only a request with the login comes this far
		return false
	})
	s := newStore(t.Context(), t, []*machine{m})
	spec := fleetv1.NodeRolloutSpec{Content: content, FailureLimit: 1, Health: fleetv1.NodeHealth{Settle: "1ms"}}
	if lack := s.awaitLack(spec, m); asked.Load() || !strings.Contains(lack, "pull secret") {
		t.Fatalf("the registry was asked with a login: %t; the node reports %q", asked.Load(), lack)
	}
	text := `{"auths":{"` + shop.Host + `":{"username":"fleet","password":"s3cret"}}}`
	if err := os.WriteFile(m.secret, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.settle(spec, rollout.StateComplete)
	if !m.runs(wanted) {
		t.Error("the node does not run the kubelet of the private registry")
	}
}

// A node waits for a registry that refuses, or that does not have the set, but not for ever. Until then, it is
// neither released nor changed.
func TestARegistryThatRefusesIsWaitedFor(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			shop := newShop(t)
			content := shop.content(shop.publish(large("v1.37.2", "")))
			shop.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
				w.WriteHeader(status)
				return true
			})
			m := newMachine(t, "w0")
			s := newStore(t.Context(), t, []*machine{m})
			spec := fleetv1.NodeRolloutSpec{Content: content, FailureLimit: 1}
			lack := s.awaitLack(spec, m)
			spec.ProgressDeadline = "1ns"
			s.settle(spec, rollout.StateStopped)
			s.expectUnchanged(m)
			if state := s.state(m.Name); state.Spec.Released || !strings.Contains(state.Spec.Reason, lack) {
				t.Errorf("it was released: %t; the reason lacks %q", state.Spec.Released, lack)
			}
		})
	}
}

// When the binaries are fetched, the change needs no registry.
func TestTheChangeNeedsNoRegistry(t *testing.T) {
	shop := newShop(t)
	wanted := large("v1.37.2", "")
	content := shop.content(shop.publish(wanted))
	o := newOrdered(t, content)
	spec := o.state("w0").Spec
	spec.Released = false
	o.write("w0", spec)
	var never atomic.Bool
	if status := o.until(&never); status.Phase != fleetv1.PhaseFetched || !o.runs(o.before) {
		t.Fatalf("an order that is not released: %+v", status)
	}
	shop.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	spec.Released = true
	o.write("w0", spec)
	if status := o.until(&never); status.Phase != fleetv1.PhaseDone || !o.runs(wanted) {
		t.Errorf("without the registry: %+v", status)
	}
}

// A registry, another user of it, and a server on the way to it can refuse a binary, and nothing else:
// the node keeps its own and reports the reason, and the rollout stops there.
func TestAHostileRegistryGainsNothing(t *testing.T) {
	elsewhere := registrytest.Start(t)
	blob := func(answer func(w http.ResponseWriter, r *http.Request)) registrytest.Hook {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				answer(w, r)
				return true
			}
			return false
		}
	}
	for name, hostile := range map[string]registrytest.Hook{
		"another binary": blob(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large("v1.37.9", "")) }),
		"an endless layer": blob(func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 1<<20))
			}
		}),
		"another manifest": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.Contains(r.URL.Path, "/manifests/") {
				_, _ = w.Write([]byte(`{"schemaVersion":2}`))
				return true
			}
			return false
		},
		"an endless manifest": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 1<<20))
			}
			return true
		},
		"a redirect to another binary": blob(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.Host+"/kubelet.exe", http.StatusTemporaryRedirect)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			shop := newShop(t)
			content := shop.content(shop.publish(large("v1.37.2", "")))
			shop.RequireLogin("fleet", "s3cret")
			shop.Intercept(hostile)
			elsewhere.Requests()
			elsewhere.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
				_, _ = w.Write(large("v1.37.9", ""))
				return true
			})
			m := newMachine(t, "w0")
			text := `{"auths":{"` + shop.Host + `":{"username":"fleet","password":"s3cret"}}}`
			if err := os.WriteFile(m.secret, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := newStore(t.Context(), t, []*machine{m})
			s.settle(fleetv1.NodeRolloutSpec{Content: content, FailureLimit: 1}, rollout.StateStopped)
			s.expectUnchanged(m)
			if bytes := sizeBelow(t, s.cache); bytes > 4<<20 {
				t.Errorf("the node's cache has %d bytes", bytes)
			}
			for _, r := range elsewhere.Requests() {
				if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
					t.Errorf("the other host got %v", r.Header)
				}
			}
		})
	}
}

// Whoever may write the registry moves the tag: the nodes have the SHA-256 of the rollout.
func TestAMovedTagIsNotFollowed(t *testing.T) {
	shop := newShop(t)
	wanted := shop.publish(large("v1.37.2", ""))
	shop.publish(large("v1.37.9", ""))
	m := newMachine(t, "w0")
	s := newStore(t.Context(), t, []*machine{m})
	content := contentOf("oci://"+shop.Host+"/team/node:dev", wanted.Components[0].SHA256)
	s.settle(fleetv1.NodeRolloutSpec{Content: content, FailureLimit: 1}, rollout.StateStopped)
	s.expectUnchanged(m)
}

func sizeBelow(t *testing.T, folder string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

package onnode_test

import (
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
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
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
	return fleettest.ContentOf("oci://"+s.Host+"/team/node@"+r.Digest, r.Components[0].SHA256)
}

func large(version string) []byte {
	return simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: version, Size: 2 << 20})
}

// The first build of a set is fetched whole, and the next one as a patch of what is installed. The cache is empty each
// time.
func TestANodeFetchesAPatchFromARegistry(t *testing.T) {
	shop := newShop(t)
	first, second := large("v1.37.2"), large("v1.37.3")
	o := unordered(t)
	apply := func(content fleetv1.Content, binary []byte) (sent int64) {
		t.Helper()
		o.cache = t.TempDir()
		o.order(content)
		if status := o.carryOut(); status.Phase != fleetv1.PhaseDone || !o.Runs(binary) {
			t.Errorf("%+v; it runs the build: %t", status, o.Runs(binary))
		}
		return shop.Sent()
	}
	whole := shop.publish(first)
	if sent := apply(shop.content(whole), first); sent < whole.Components[0].Layer.SizeBytes {
		t.Errorf("it fetched %d bytes of the first build, want the layer's %d", sent, whole.Components[0].Layer.SizeBytes)
	}
	report := shop.publish(second)
	patch, manifest := report.Components[0].Patches[0].Layer.SizeBytes, int64(4096)
	if sent := apply(shop.content(report), second); sent > patch+manifest {
		t.Errorf("it fetched %d bytes of the second build, want the patch's %d and a manifest", sent, patch)
	}
}

// The login of a private registry is the pull secret of the pod. Without it, the node stays as it is, and reports
// what it lacks; when the secret appears, the order goes on.
func TestAPullSecretIsUsed(t *testing.T) {
	shop := newShop(t)
	content := shop.content(shop.publish(large("v1.37.2")))
	shop.RequireLogin("fleet", "s3cret")
	var asked atomic.Bool
	shop.Intercept(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		asked.Store(true) // only a request with the login comes this far
		return false
	})
	o := newClaimed(t, content)
	defer o.run()()
	if lack := o.awaitLack(); asked.Load() || !strings.Contains(lack, "pull secret") {
		t.Fatalf("the registry was asked with a login: %t; the node reports %q", asked.Load(), lack)
	}
	text := `{"auths":{"` + shop.Host + `":{"username":"fleet","password":"s3cret"}}}`
	if err := os.WriteFile(o.secret, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.awaitFetched()
}

// awaitLack waits until the running program reports why it cannot fetch its binaries, and returns the reason.
func (o *ordered) awaitLack() string {
	o.t.Helper()
	o.await("a report of what the node lacks", func(s fleetv1.NodeState) bool {
		return s.Status.Message != "" && s.Status.Hash == s.Spec.Hash
	})
	status := o.state().Status
	if status.Phase != fleetv1.PhaseWorking || !o.Runs(o.First) {
		o.t.Errorf("without its binaries, the node reports %+v; it runs its first kubelet: %t", status, o.Runs(o.First))
	}
	return status.Message
}

// awaitFetched waits until the running program has fetched the binaries of the present order.
func (o *ordered) awaitFetched() {
	o.t.Helper()
	o.await("the binaries to be fetched", func(s fleetv1.NodeState) bool {
		return s.Status.Phase == fleetv1.PhaseFetched && s.Status.Hash == s.Spec.Hash
	})
}

// A node waits for a registry that refuses, or that does not have the set.
func TestARegistryThatRefusesIsWaitedFor(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			shop := newShop(t)
			content := shop.content(shop.publish(large("v1.37.2")))
			shop.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
				w.WriteHeader(status)
				return true
			})
			o := newClaimed(t, content)
			defer o.run()()
			o.awaitLack()
			shop.Intercept(nil)
			o.awaitFetched()
		})
	}
}

// When the binaries are fetched, the change needs no registry.
func TestTheChangeNeedsNoRegistry(t *testing.T) {
	shop := newShop(t)
	wanted := large("v1.37.2")
	o := newClaimed(t, shop.content(shop.publish(wanted)))
	if status := o.carryOut(); status.Phase != fleetv1.PhaseFetched || !o.Runs(o.First) {
		t.Fatalf("an order that is not released: %+v", status)
	}
	shop.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	o.release()
	if status := o.carryOut(); status.Phase != fleetv1.PhaseDone || !o.Runs(wanted) {
		t.Errorf("without the registry: %+v", status)
	}
}

package onnode_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
)

// A server that serves other bytes than the order names, a content that may not overwrite what it finds, and one
// whose binary no service would run, end the order before its release. The node is unchanged.
func TestARefusedOrderEndsBeforeItsRelease(t *testing.T) {
	d := fleettest.NewFileServer(t, map[string][]byte{"kubelet.exe": fleettest.Kubelet("v1.37.2", "")})
	protected := d.Content("kubelet.exe")
	protected.Provisioners[0].Overwrite = new(bool)
	wrong := d.Content("kubelet.exe")
	wrong.Provisioners[0].SHA256 = strings.Repeat("a", 64)
	elsewhere := d.Content("kubelet.exe")
	elsewhere.Provisioners[0].Destination = `C:\kubernetes\kubelet.exe`
	misspelt := d.Content("kubelet.exe")
	misspelt.Provisioners[0].Name = "kublet"
	for reason, content := range map[string]fleetv1.Content{
		"overwrite is false": protected, wrong.Provisioners[0].SHA256: wrong,
		"service kubelet runs " + simulated.KubeletPath: elsewhere,
		"there is no service kublet":                    misspelt,
	} {
		t.Run(reason, func(t *testing.T) {
			o := newClaimed(t, content)
			status := o.carryOut()
			if status.Phase != fleetv1.PhaseRolledBack || !o.Runs(o.First) ||
				!strings.Contains(status.Message, "the node is unchanged") || !strings.Contains(status.Message, reason) {
				t.Errorf("%+v; it runs its first kubelet: %t", status, o.Runs(o.First))
			}
		})
	}
}

// A corrected content does not wait for the fetch of the one before it.
func TestANewerContentEndsAFetch(t *testing.T) {
	t.Setenv(source.StallVariable, "1h")
	asked := make(chan struct{}, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": fleettest.Kubelet("v1.37.2", "")})
	o := newClaimed(t, fleettest.ContentOf(silent.URL+"/kubelet.exe", strings.Repeat("a", 64)))
	defer o.run()()
	<-asked
	o.claim(d.Content("good.exe"))
	o.awaitFetched()
}

// A probe of the content's own decides in place of the kubelet's healthz. It fails while the new kubelet runs: a
// probe that fails before the change does not decide.
func TestAProbeOfTheContentDecides(t *testing.T) {
	wanted := fleettest.Kubelet("v1.37.2", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": wanted})
	content := d.Content("good.exe")
	content.Provisioners[0].Health.HTTPGet = probedURL
	o := newOrdered(t, content)
	var fails atomic.Bool
	fails.Store(true)
	o.probed(func() bool { return !fails.Load() || !o.Runs(wanted) })
	if status := o.carryOut(); status.Phase != fleetv1.PhaseRolledBack || !o.Runs(o.First) ||
		!strings.Contains(status.Message, probedURL) {
		t.Errorf("%+v; it runs its first kubelet: %t", status, o.Runs(o.First))
	}
	fails.Store(false)
	content.Provisioners[0].Version = "v1.37.2" // another content is another try
	o.order(content)
	if status := o.carryOut(); status.Phase != fleetv1.PhaseDone || !o.Runs(wanted) {
		t.Errorf("%+v; it runs the content: %t", status, o.Runs(wanted))
	}
}

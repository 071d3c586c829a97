package cni_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

func TestCompleteNamesTheFlagOfEachProblem(t *testing.T) {
	good := func() (cni.Settings, cni.Facts) {
		return cni.Settings{Network: cni.Calico}, cni.Facts{Version: "v1.36.3",
			PodCIDRs:     []string{"fd00::/48", "10.244.0.0/16"},
			ServiceCIDRs: []string{"10.96.0.0/12"}, APIServer: "10.0.0.1:6443"}
	}
	for name, test := range map[string]struct {
		change func(*cni.Settings, *cni.Facts)
		want   string // "" if there is no problem
	}{
		"good":         {func(*cni.Settings, *cni.Facts) {}, ""},
		"no pods":      {func(_ *cni.Settings, f *cni.Facts) { f.PodCIDRs = nil }, "--pod-cidr"},
		"pods of IPv6": {func(s *cni.Settings, _ *cni.Facts) { s.PodCIDR = "fd00::/48" }, "--pod-cidr"},
		"few pods":     {func(s *cni.Settings, _ *cni.Facts) { s.PodCIDR = "10.0.0.0/27" }, "--pod-cidr"},
		"no prefix":    {func(s *cni.Settings, _ *cni.Facts) { s.PodCIDR = "10.0.0.0" }, "--pod-cidr"},
		"overlap":      {func(s *cni.Settings, _ *cni.Facts) { s.PodCIDR = "10.100.0.0/16" }, "overlap"},
		"no Services":  {func(_ *cni.Settings, f *cni.Facts) { f.ServiceCIDRs = nil }, "--service-cidr"},
		"no server":    {func(_ *cni.Settings, f *cni.Facts) { f.APIServer = "" }, "--api-server"},
		"no port":      {func(s *cni.Settings, _ *cni.Facts) { s.APIServer = "10.0.0.1" }, "--api-server"},
		"a port of 0":  {func(s *cni.Settings, _ *cni.Facts) { s.APIServer = "10.0.0.1:0" }, "--api-server"},
		"no host":      {func(s *cni.Settings, _ *cni.Facts) { s.APIServer = ":6443" }, "--api-server"},
		"kindnet": {func(_ *cni.Settings, f *cni.Facts) {
			f.OtherNetwork = "of DaemonSet kube-system/kindnet"
		}, "kindnet"},
		"flannel": {func(_ *cni.Settings, f *cni.Facts) { f.Networks.Flannel = &cluster.Flannel{} }, "flannel"},
		"antrea":  {func(_ *cni.Settings, f *cni.Facts) { f.Networks.Antrea = &cluster.Antrea{} }, "antrea"},
		"Antrea's own": {func(s *cni.Settings, f *cni.Facts) {
			s.Network, f.Networks.Antrea = cni.Antrea, &cluster.Antrea{}
		}, ""},
		"Antrea reads addresses from the cluster": {func(s *cni.Settings, f *cni.Facts) {
			s.Network, f.PodCIDRs, f.ServiceCIDRs = cni.Antrea, nil, nil
		}, ""},
		"Antrea without a server": {func(s *cni.Settings, f *cni.Facts) {
			s.Network, f.APIServer = cni.Antrea, ""
		}, "--api-server"},
		"left-over pools": {func(s *cni.Settings, f *cni.Facts) {
			s.Network, f.Networks.Calico = cni.Flannel, &cluster.Calico{}
		}, ""},
		"Calico's own": {func(_ *cni.Settings, f *cni.Facts) { f.Networks.Calico = &cluster.Calico{Operator: true} }, ""},
		"another operator": {func(s *cni.Settings, f *cni.Facts) {
			s.Network, f.Networks.Calico = cni.Flannel, &cluster.Calico{Operator: true}
		}, "calico"},
	} {
		settings, facts := good()
		test.change(&settings, &facts)
		_, err := settings.Complete(facts)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, wanted %q", name, err, test.want)
		}
	}
}

func TestCompleteReturnsEveryProblem(t *testing.T) {
	_, err := cni.Settings{Network: cni.Calico}.Complete(cni.Facts{OtherNetwork: "of DaemonSet kube-system/kindnet"})
	var other *cni.OtherNetworkError
	if !errors.As(err, &other) {
		t.Errorf("no OtherNetworkError in %v", err)
	}
	for _, flag := range []string{"--pod-cidr", "--service-cidr", "--api-server"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("the errors lack %s: %v", flag, err)
		}
	}
}

func TestReleases(t *testing.T) {
	for _, n := range cni.Networks() {
		pinned := cni.ReleaseOf(n, "", "")
		if !strings.Contains(pinned.URL, pinned.Version) {
			t.Errorf("%s: %+v", n, pinned)
		}
		if known := pinned.SHA256 != ""; known == (n == cni.Antrea) { // the files of a release of Antrea are in no module
			t.Errorf("%s: its hash is known: %t", n, known)
		}
		if same := cni.ReleaseOf(n, strings.TrimPrefix(pinned.Version, "v"), ""); same != pinned {
			t.Errorf("%s without v: %+v, wanted %+v", n, same, pinned)
		}
		if other := cni.ReleaseOf(n, "v9.9.9", ""); other.SHA256 != "" || !strings.Contains(other.URL, "/v9.9.9/") {
			t.Errorf("%s of another version: %+v", n, other)
		}
	}
	if _, err := cni.NetworkNamed("cilium"); err == nil || !strings.Contains(err.Error(), "calico, flannel or antrea") {
		t.Errorf("an unknown network: %v", err)
	}
}

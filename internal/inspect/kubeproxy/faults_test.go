package kubeproxy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// planted is the form of a known defect on the sound node.
type planted struct {
	name   string
	source string // the issue that reports the defect, or the code that makes it
	plant  func(w *world)
	// version is that of kube-proxy; empty: v1.36.3.
	version string
	want    []brief
	defect  string // number of an issue that the finding names
}

// balancer returns the load balancer of a front end.
func (w *world) balancer(vip string, port int) object {
	for _, b := range w.balancers {
		vips, _ := b["FrontendVIPs"].([]string)
		if b["PortMappings"].([]any)[0].(object)["ExternalPort"] == port && (vip == "" && vips == nil || slices.Equal(vips, []string{vip})) {
			return b
		}
	}
	return nil
}

func (w *world) drop(vip string, port int) { delete(w.balancers, w.balancer(vip, port)["ID"].(string)) }

func plantedDefects() []planted {
	const at, atPort = vip + ":80/tcp", "node port 30080/tcp (IPv4)"
	local, remote := idOf("local "+podHere), idOf("remote "+podThere)
	backends := func(ids ...string) func(*world) {
		return func(w *world) { w.balancer(vip, 80)["HostComputeEndpoints"] = ids }
	}
	return []planted{
		{name: "a load balancer that was removed", source: "k/k#135802", plant: func(w *world) { w.drop(vip, 80) },
			want: []brief{{kubeproxy.Missing, "shop/plain", at}}, defect: "135802"},
		{name: "the rules are checked hourly", source: "k/k#135631", plant: func(w *world) { w.drop(vip, 80) }, version: "v1.34.3",
			want: []brief{{kubeproxy.Missing, "shop/plain", at}}, defect: "135631"},
		{name: "a node port that is taken", source: "k/k#98499", plant: func(w *world) { w.drop("", 30080) },
			want: []brief{{kubeproxy.Missing, "shop/outside", atPort}}, defect: "98499"},
		{name: "a cluster IP with internal traffic policy Local", source: "k/k#133928", version: "v1.33.5", plant: func(w *world) {
			w.serve("inside", "10.96.1.1", pods(here, podHere), internalLocal)
		}, want: []brief{{kubeproxy.Missing, "shop/inside", "10.96.1.1:80/tcp"}}, defect: "133928"},
		{name: "an ingress that failed and is not tried again", source: "winkernel/proxier.go: continue in the loop of ingress addresses",
			plant: func(w *world) {
				w.serve("balanced", "10.96.1.1", pods(here, podHere), loadBalanced("203.0.113.9", 30081, 0))
				w.balance("10.96.1.1", 80, dsr, 0, local)
				w.balance("", 30081, 0, viaNodePort, local)
			}, want: []brief{{kubeproxy.Missing, "shop/balanced", "203.0.113.9:80/tcp"}}, defect: "98499"},
		{name: "external traffic policy Local and only remote pods", source: "k/k#115783", version: "v1.26.1", plant: func(w *world) {
			w.serve("far", "10.96.1.1", pods(there, podThere), loadBalanced("203.0.113.9", 30081, 0), externalLocal)
			w.slice("far", discoveryv1.AddressTypeIPv4, 8080, []end{{ip: "10.244.1.77", node: here, not: true}})
		}, want: []brief{{kubeproxy.Missing, "shop/far", "10.96.1.1:80/tcp"}}, defect: "115783"},
		{name: "an ignored change", source: "k/k#131466", version: "v1.33.1", plant: backends(local),
			want: []brief{{kubeproxy.Backends, "shop/plain", at}}, defect: "131466"},
		{name: "backends of before a restart of HNS", source: "k/k#139519", plant: func(w *world) {
			w.pod("stranger", there, anotherThere)
			backends(local, w.remote(anotherThere))(w)
		}, want: []brief{{kubeproxy.Backends, "shop/plain", at}}, defect: "139519"},
		{name: "endpoints that were deleted", source: "k/k#113524", version: "v1.25.4",
			plant: backends(local, remote, "DEADBEEF-0000-0000-0000-000000000001"),
			want:  []brief{{kubeproxy.Backends, "shop/plain", at}}, defect: "113524"},
		{name: "a load balancer of the other family", source: "k/k#136240", version: "v1.35.0",
			plant: func(w *world) { w.balancer(vip, 80)["Flags"] = dsr + ipv6 },
			want:  []brief{{kubeproxy.Flags, "shop/plain", at}}, defect: "136240"},
		{name: "without DSR", source: "winkernel/hns.go: loadBalancerIdentifier has no flags",
			plant: func(w *world) { delete(w.balancer(vip, 80), "Flags") }, want: []brief{{kubeproxy.Flags, "shop/plain", at}}},
		{name: "without affinity", source: "winkernel/hns.go: loadBalancerIdentifier has no distribution type",
			plant: func(w *world) { w.Services[0].Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
			want:  []brief{{kubeproxy.Flags, "shop/plain", at}}},
		{name: "the old target port", source: "k/k#132647",
			plant: func(w *world) { w.balancer(vip, 80)["PortMappings"].([]any)[0].(object)["InternalPort"] = 9090 },
			want:  []brief{{kubeproxy.Target, "shop/plain", at}}},
		{name: "a Service without endpoints", source: "k/k#137530", plant: func(w *world) { w.Slices[0].Endpoints = nil },
			want: []brief{{kubeproxy.Stale, "shop/plain", at}}, defect: "137530"},
		{name: "a Service that is gone", source: "k/k#137530: the node port is held, without an owner", plant: func(w *world) {
			w.Services = w.Services[:1]
		}, want: []brief{{kubeproxy.Stale, "", "10.96.0.21:80/tcp"}, {kubeproxy.Stale, "", atPort}}, defect: "137530"},
		{name: "twins", source: "k/k#112836", version: "v1.25.0", plant: func(w *world) {
			w.balance(vip, 80, dsr, 0, local)
		}, want: []brief{{kubeproxy.Doubled, "shop/plain", at}}, defect: "112836"},
		{name: "a load balancer without ports", source: "k/k#141488", version: "v1.36.4", plant: func(w *world) {
			w.balancers["broken"] = object{"ID": "BROKEN", "FrontendVIPs": []string{"10.96.7.7"}}
		}, want: []brief{{kubeproxy.NoPorts, "", ""}}, defect: "141488"},
		{name: "a remote endpoint of nothing", source: "k/k#135144", version: "v1.33.5", plant: func(w *world) { w.remote(anotherThere) },
			want: []brief{{kubeproxy.StaleRemote, "", anotherThere}}, defect: "135144"},
		{name: "a remote endpoint whose address a pod of this node has now", source: "Windows-Containers#631", plant: func(w *world) {
			w.remote("10.244.1.9")
			w.pod("new", here, "10.244.1.9")
		}, want: []brief{{kubeproxy.StaleRemote, "", "10.244.1.9"}}, defect: "Windows-Containers/issues/631"},
		{name: "a remote twin of a pod", source: "k/k#138000 (repaired by k/k#138603)", version: "v1.36.0", plant: func(w *world) { w.remote(podHere) },
			want: []brief{{kubeproxy.RemoteTwin, "", podHere}}, defect: "138000"},
		{name: "the pod's endpoint was deleted instead of its twin", source: "k/k#130963", version: "v1.32.4", plant: func(w *world) {
			delete(w.endpoints, local)
			for _, b := range w.balancers {
				b["HostComputeEndpoints"] = []string{remote}
			}
		}, want: []brief{{kubeproxy.LostPod, "shop/outside", podHere}}, defect: "130963"},
		{name: "two remote endpoints of one address", source: "winkernel/hns.go: getAllEndpointsByNetwork keeps the first", plant: func(w *world) {
			w.remote(podThere)
			double := object{}
			for k, v := range w.endpoints[remote] {
				double[k] = v
			}
			double["ID"] = "FFFFFFFF-0000-0000-0000-000000000001"
			w.endpoints["double"] = double
		}, want: []brief{{kubeproxy.Doubled, "", podThere}}},
		{name: "unready pods behind a cluster IP", source: "winkernel/proxier.go: isAllEndpointsNonServing skips remote endpoints", plant: func(w *world) {
			w.serve("far", "10.96.1.1", []end{{ip: anotherThere, node: there, not: true, notServing: true}},
				loadBalanced("203.0.113.9", 30081, 0), externalLocal)
			w.balance("10.96.1.1", 80, dsr, 0, w.remote(anotherThere))
		}, want: []brief{{kubeproxy.Unready, "shop/far", "10.96.1.1:80/tcp"}}},
		{name: "backends with different ports", source: "winkernel/proxier.go: the last endpoint's port wins", plant: func(w *world) {
			w.slice("plain", discoveryv1.AddressTypeIPv4, 9090, pods(there, anotherThere))
			backends(local, remote, w.remote(anotherThere))(w)
		}, want: []brief{{kubeproxy.MixedPorts, "shop/plain", at}}},
		{name: "two Services with one external address", source: "CVE-2020-8554: any user may name external addresses", plant: func(w *world) {
			w.serve("greedy", "10.96.1.1", pods(there, podThere)).Spec.ExternalIPs = []string{vip}
			w.balance("10.96.1.1", 80, dsr, 0, remote)
		}, want: []brief{{kubeproxy.Conflict, "shop/greedy", at}}},
		{name: "a load balancer of another program", source: "hcsshim hcnloadbalancer.go: AddLoadBalancer has several front ends", plant: func(w *world) {
			w.balance("10.0.0.9", 443, 0, 1, local)
		}, want: []brief{{kubeproxy.Foreign, "", ""}}},
		{name: "a load balancer without endpoints", source: "hcsshim hcnloadbalancer.go: AddLoadBalancer takes none", plant: func(w *world) {
			w.balance("10.0.0.9", 443, 0, 0)
		}, want: []brief{{kubeproxy.Foreign, "", ""}}},
		{name: "an administrator's load balancer on kube-proxy's network", source: "microsoft/SDN Kubernetes/windows/hns.psm1: New-HnsLoadBalancer",
			plant: func(w *world) { w.balance("169.254.169.254", 80, 0, 0, local) }, want: []brief{{kubeproxy.Foreign, "", ""}}},
		{name: "the node port of a Service that is gone, with pods of this node", source: "k/k#137530",
			plant: func(w *world) { w.balance("", 30099, 0, viaNodePort, local) },
			want:  []brief{{kubeproxy.Stale, "", "node port 30099/tcp (IPv4)"}}, defect: "137530"},
	}
}

// TestPlantedDefects checks that the form of each known defect is found, and nothing else.
func TestPlantedDefects(t *testing.T) {
	for _, p := range plantedDefects() {
		t.Run(p.name, func(t *testing.T) {
			w := sound()
			if p.version != "" {
				w.settings.Version = p.version
			}
			p.plant(w)
			r := w.compare(t)
			got, want := briefs(r), slices.Clone(p.want)
			sortBriefs(got)
			sortBriefs(want)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(brief{})); diff != "" {
				t.Fatalf("%s\n%+v", diff, r.Findings)
			}
			for _, f := range r.Findings {
				if f.What == "" || f.Affected == "" && f.Kind != kubeproxy.Foreign || f.Remedy == "" {
					t.Errorf("a finding lacks a text: %+v", f)
				}
				if p.defect != "" && !slices.ContainsFunc(f.Defects, func(d kubeproxy.Defect) bool {
					return strings.HasSuffix(d.Link, p.defect) && d.Affects == kubeproxy.Affected
				}) {
					t.Errorf("the finding does not name %s: %+v", p.defect, f.Defects)
				}
			}
		})
	}
}

// TestRepairedVersions checks that a version with the repair of a defect is not said to have it.
func TestRepairedVersions(t *testing.T) {
	for version, want := range map[string]string{
		"v1.33.5": kubeproxy.Affected, "v1.33.6": "", "v1.34.1": kubeproxy.Affected, "v1.34.2": "", "v1.35.0": "", "v1.36.3": "",
		"v1.30.9": "", "": kubeproxy.CannotTell, "v1.32.10": "", "hostile\x1b[2J": kubeproxy.CannotTell,
	} {
		w := sound()
		w.settings.Version = version
		w.remote(anotherThere)
		got := ""
		for _, d := range w.compare(t).Findings[0].Defects {
			if strings.HasSuffix(d.Link, "135144") {
				got = d.Affects
			}
		}
		if got != want {
			t.Errorf("version %q: %q, want %q", version, got, want)
		}
	}
}

// TestHostileNode checks that a node with any objects yields bounded findings without control characters.
func TestHostileNode(t *testing.T) {
	w := sound()
	for i := range 3000 {
		id := "\x1b[2J" + strings.Repeat("x", 10_000) + string(rune('a'+i%26))
		w.balancers[id+strings.Repeat("y", i%7)] = object{"ID": id, "FrontendVIPs": []string{"\x1b]0;title\x07", "2.2.2.2"},
			"HostComputeEndpoints": []string{id, id}, "PortMappings": []any{object{"Protocol": 6, "ExternalPort": i}}}
		w.balance("10.99.0.1", i+1, 0, 0, id)
	}
	r := w.compare(t)
	if len(r.Findings) != 1000 || r.Omitted == 0 {
		t.Errorf("%d findings, %d left out", len(r.Findings), r.Omitted)
	}
	for _, f := range r.Findings {
		text := f.What + f.Evidence + f.ID + f.At + strings.Join(f.Dead, "")
		if strings.ContainsAny(text, "\x1b\x07") || len(text) > 2000 {
			t.Fatalf("%d bytes: %.200q", len(text), text)
		}
	}
}

// TestPortlessOnAnotherNetworkStays checks that a load balancer without ports is reported, and not removed if one of its
// endpoints is of another network.
func TestPortlessOnAnotherNetworkStays(t *testing.T) {
	for name, kept := range map[string]bool{"elsewhere": true, networkID: false} {
		w := sound()
		id := w.local("10.244.1.9")
		w.endpoints[id]["HostComputeNetwork"] = name
		w.balancers["broken"] = object{"ID": "BROKEN", "FrontendVIPs": []string{"10.96.7.7"}, "HostComputeEndpoints": []string{id}}
		r := w.compare(t)
		if len(r.Findings) != 1 || r.Findings[0].Kind != kubeproxy.NoPorts || r.Findings[0].MustStay() != kept {
			t.Errorf("network %s: %+v", name, r.Findings)
		}
	}
}

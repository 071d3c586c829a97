//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/inspect/programmed"
)

// servicesOfAllSorts is a manifest with a Service of each sort that kube-proxy programs in a way of its own. 10.244.1.5 is
// the address of a pod of the node wine-1, the others are of other nodes.
func servicesOfAllSorts() string {
	const both = `{addresses: [10.244.1.5], nodeName: wine-1}, {addresses: [10.244.2.7], nodeName: linux-1}`
	const dying = `{addresses: [10.244.2.9], nodeName: linux-1, conditions: {ready: false, serving: true, terminating: true}}`
	var manifest strings.Builder
	for _, one := range []struct{ name, spec, endpoints string }{
		{"plain", "", both},
		{"rolling", "", both + ", " + dying},
		{"empty", "", ""},
		{"inside", "internalTrafficPolicy: Local", both},
		{"elsewhere", "internalTrafficPolicy: Local", `{addresses: [10.244.2.7], nodeName: linux-1}`},
		{"sticky", "sessionAffinity: ClientIP", both},
		{"outside", "type: NodePort", both},
		{"near", "type: NodePort, externalTrafficPolicy: Local", both},
		{"near-inside", "type: NodePort, externalTrafficPolicy: Local, internalTrafficPolicy: Local", both},
		{"named", "externalIPs: [203.0.113.40, 203.0.113.41]", both},
		{"balanced", "type: LoadBalancer", both},
		{"balanced-near", "type: LoadBalancer, externalTrafficPolicy: Local", both},
		{"ending", "type: LoadBalancer", dying},
		{"dual", "ipFamilyPolicy: PreferDualStack, type: NodePort", both},
	} {
		fmt.Fprintf(&manifest, `---
{apiVersion: v1, kind: Service, metadata: {name: %[1]s}, spec: {%[2]s, ports: [{name: http, port: 80, targetPort: 8080}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: %[1]s-4,
  labels: {kubernetes.io/service-name: %[1]s}}, ports: [{name: http, port: 8080, protocol: TCP}], endpoints: [%[3]s]}
`, one.name, one.spec, one.endpoints)
	}
	return strings.ReplaceAll(manifest.String(), "{, ports", "{ports")
}

// TestServiceTruthOfRealKubeProxy holds the model of kube-proxy against the real one: of what it makes itself nothing is
// found, and of planted objects each is found, and nothing else.
func TestServiceTruthOfRealKubeProxy(t *testing.T) {
	n := newProxyNode(t, labKubeProxy(t))
	n.plantObject(t, "endpoints", "AAAAAAAA-0000-0000-0000-000000000005", `{"Name":"pod_cbr0","HostComputeNetwork":`+
		`"1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44","MacAddress":"00-15-5D-0A-0F-A7","IpConfigurations":[{"IpAddress":"10.244.1.5","PrefixLength":24}]}`)
	n.apply(t, servicesOfAllSorts())
	for name, ip := range map[string]string{"balanced": "203.0.113.50", "balanced-near": "203.0.113.51", "ending": "203.0.113.52"} {
		n.kubectl(t, "patch", "service", name, "--subresource=status", "--type=merge", "-p",
			`{"status":{"loadBalancer":{"ingress":[{"ip":"`+ip+`"}]}}}`)
	}
	ok(t, "exec", "-c", n.config, "--", "net", "start", "kube-proxy")
	var sound programmed.Node
	within(t, 3*time.Minute, "kube-proxy programs all Services", func() error {
		r := swdt(t, "network", "services", "-c", n.config, "--kubeconfig", n.Kubeconfig, "-o", "json", "--interval", "2s")
		if r.code != 0 && r.code != exitFinding {
			t.Fatalf("exit code %d", r.code)
		}
		sound = decoded[programmed.Report](t, r).Nodes[0]
		if len(sound.Findings) > 0 || sound.PendingCount > 0 || !sound.Proxy.Settled {
			return fmt.Errorf("%d pending, %+v", sound.PendingCount, sound.Findings)
		}
		return nil
	})
	if sound.Wanted < 20 || sound.Held != sound.Wanted || sound.Proxy.Version != kubeProxyVersion || sound.Proxy.Network != "cbr0" {
		t.Errorf("a sound node: %+v", sound)
	}
	before := n.content(t)
	want := n.plantFaults(t)
	r := swdt(t, "network", "services", "-c", n.config, "--kubeconfig", n.Kubeconfig, "-o", "json", "--interval", "2s")
	if r.code != exitFinding {
		t.Errorf("exit code %d", r.code)
	}
	var got []string
	for _, f := range decoded[programmed.Report](t, r).Nodes[0].Findings {
		got = append(got, fmt.Sprintf("%s %s %s", f.Kind, f.Service, f.Use))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	fixed := decoded[programmed.RepairReport](t, ok(t, "network", "services", "-c", n.config, "--kubeconfig", n.Kubeconfig, "-o", "json",
		"--interval", "4s", "--fix", "--yes"))
	for _, repair := range fixed.Repairs {
		if repair.Result != programmed.Repaired {
			t.Errorf("%+v", repair)
		}
	}
	if len(fixed.Repairs) < 10 || len(fixed.Nodes[0].Findings) > 0 {
		t.Errorf("%d repairs, and then %+v", len(fixed.Repairs), fixed.Nodes[0].Findings)
	}
	if diff := cmp.Diff(before, n.content(t)); diff != "" {
		t.Errorf("HNS before the faults and after the repair: %s", diff)
	}
	if left := n.kubectl(t, "get", "services", "-o", "jsonpath={.items[*].metadata.annotations.winProxyOptimization}"); left != "" {
		t.Errorf("annotations are left: %s", left)
	}
}

// content returns the objects of HNS without the IDs of load balancers, which are new after a repair.
func (n proxyNode) content(t *testing.T) (all []string) {
	t.Helper()
	for _, kind := range []string{"loadbalancers", "endpoints"} {
		files, err := filepath.Glob(filepath.Join(n.hns(), kind, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			object := n.object(t, kind, strings.TrimSuffix(filepath.Base(file), ".json"))
			if kind == "loadbalancers" {
				delete(object, "ID")
			}
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, kind+" "+string(text))
		}
	}
	slices.Sort(all)
	return all
}

// plantObject writes an object of the imitation of HNS.
func (n proxyNode) plantObject(t *testing.T, kind, id, fields string) {
	t.Helper()
	path := filepath.Join(n.hns(), kind, id+".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"ID":"`+id+`",`+strings.TrimPrefix(fields, "{")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// plantFaults changes the objects that kube-proxy has made, and returns the findings to expect. kube-proxy does not mend
// them, since it has applied the Services.
func (n proxyNode) plantFaults(t *testing.T) (want []string) {
	t.Helper()
	balancers := n.balancers(t)
	addressOf := func(service string) string {
		return n.kubectl(t, "get", "service", service, "-o", "jsonpath={.spec.clusterIP}")
	}
	expect := func(kind kubeproxy.Kind, service string, use kubeproxy.Use) {
		if service != "" {
			service = "default/" + service
		}
		want = append(want, fmt.Sprintf("%s %s %s", kind, service, use))
	}
	change := func(service string, change func(balancer map[string]any)) {
		id := balancers[addressOf(service)]
		object := n.object(t, "loadbalancers", id)
		change(object)
		n.write(t, "loadbalancers", object["ID"].(string), object)
	}
	if err := os.Remove(filepath.Join(n.hns(), "loadbalancers", balancers[addressOf("plain")]+".json")); err != nil {
		t.Fatal(err)
	}
	expect(kubeproxy.Missing, "plain", kubeproxy.ClusterIP)
	change("sticky", func(b map[string]any) { delete(b["PortMappings"].([]any)[0].(map[string]any), "DistributionType") })
	expect(kubeproxy.Flags, "sticky", kubeproxy.ClusterIP)
	change("inside", func(b map[string]any) { b["HostComputeEndpoints"] = []string{"DEADBEEF-0000-0000-0000-000000000001"} })
	expect(kubeproxy.Backends, "inside", kubeproxy.ClusterIP)
	change("outside", func(b map[string]any) { b["ID"], b["Flags"] = "BBBBBBBB-0000-0000-0000-000000000001", 1 })
	expect(kubeproxy.Doubled, "outside", kubeproxy.ClusterIP)
	change("near", func(b map[string]any) { b["PortMappings"].([]any)[0].(map[string]any)["InternalPort"] = 9090 })
	expect(kubeproxy.Target, "near", kubeproxy.ClusterIP)
	change("named", func(b map[string]any) {
		b["ID"], b["FrontendVIPs"] = "BBBBBBBB-0000-0000-0000-000000000002", []string{"10.96.200.1"}
	})
	expect(kubeproxy.Stale, "", "")
	change("rolling", func(b map[string]any) {
		b["ID"], b["FrontendVIPs"] = "BBBBBBBB-0000-0000-0000-000000000003", []string{addressOf("empty")}
	})
	expect(kubeproxy.Stale, "empty", kubeproxy.ClusterIP)
	const remote = `{"Name":"Ethernet","Flags":1,"HostComputeNetwork":"1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44",`
	n.plantObject(t, "endpoints", "AAAAAAAA-0000-0000-0000-000000000099",
		remote+`"MacAddress":"02-11-0a-f4-02-63","IpConfigurations":[{"IpAddress":"10.244.2.99"}]}`)
	expect(kubeproxy.StaleRemote, "", "")
	return want
}

// balancers returns the IDs of the load balancers with an address, by that address.
func (n proxyNode) balancers(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.hns(), "loadbalancers", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		if vips, _ := n.object(t, "loadbalancers", id)["FrontendVIPs"].([]any); len(vips) == 1 {
			ids[vips[0].(string)] = id
		}
	}
	if len(ids) < 10 {
		t.Fatalf("load balancers of %v", slices.Sorted(maps.Keys(ids)))
	}
	return ids
}

func (n proxyNode) object(t *testing.T, kind, id string) (object map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.hns(), kind, id+".json"))
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func (n proxyNode) write(t *testing.T, kind, id string, object map[string]any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err == nil {
		err = os.WriteFile(filepath.Join(n.hns(), kind, id+".json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

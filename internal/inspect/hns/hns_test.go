package hns_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/hns/hnstest"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
)

var update = flag.Bool("update", false, "write the golden files anew")

func calico(t *testing.T) hns.View {
	t.Helper()
	f := hnstest.Calico()
	state := hns.Parse(f.Documents())
	return hns.View{State: state, All: state, Known: f.Known}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what it was; look at it with: go test ./internal/inspect/hns -update && git diff", name)
	}
}

func TestCalicoNodeHasItsSize(t *testing.T) {
	s := calico(t).State
	switch {
	case len(s.Networks) != 3:
		t.Errorf("len(s.Networks) = %v, want 3: %+v", len(s.Networks), s.Networks)
	case len(s.Endpoints) != 40:
		t.Errorf("len(s.Endpoints) = %v, want 40: %+v", len(s.Endpoints), s.Endpoints)
	case len(s.LoadBalancers) != 120:
		t.Errorf("len(s.LoadBalancers) = %v, want 120: %+v", len(s.LoadBalancers), s.LoadBalancers)
	case len(s.Namespaces) != hnstest.Pods:
		t.Errorf("len(s.Namespaces) = %v, want %v; %d networks, %d endpoints, %d load balancers, %d namespaces",
			len(s.Namespaces), hnstest.Pods, len(s.Networks), len(s.Endpoints), len(s.LoadBalancers), len(s.Namespaces))
	}
}

func TestTables(t *testing.T) {
	v := calico(t)
	for name, table := range map[string]ui.Listing{
		"networks": v.Networks(), "endpoints": v.Endpoints(), "loadbalancers": v.LoadBalancers(),
		"namespaces": v.Namespaces(), "policies": v.Policies(),
	} {
		var out bytes.Buffer
		if err := ui.Table(&out, table.Header, table.Rows); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", out.Bytes())
	}
}

// Decoding an encoded State gives an equal State, as facts and bundles need it.
func TestStateIsTheSameAfterJSON(t *testing.T) {
	before := calico(t).State
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var after hns.State
	if err := json.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, after) {
		t.Error("it is not what it was")
	}
	golden(t, "state.json", append(indented(t, text), '\n'))
}

func indented(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", " "); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestObjectsHaveTheirOwners(t *testing.T) {
	v := calico(t)
	whose := func(k hns.Known) map[string]int {
		count := map[string]int{}
		tally := func(kind, name string) {
			if name != hns.None && name != hns.Unknown {
				name = "named"
			}
			count[kind+" "+name]++
		}
		for _, e := range v.State.Endpoints {
			tally("endpoint", k.PodOf(e))
		}
		for _, n := range v.State.Namespaces {
			tally("namespace", k.PodIn(v.State, n))
		}
		for _, l := range v.State.LoadBalancers {
			tally("balancer", k.ServiceOf(l))
		}
		return count
	}
	runtime := hns.Known{Here: v.Known.Here, Runtime: true}
	byName, byIP := runtime, runtime
	byName.Here, byIP.Here = nil, nil
	for _, p := range runtime.Here {
		byName.Here = append(byName.Here, hns.Pod{Namespace: p.Namespace, Name: p.Name, Sandbox: p.Sandbox})
		byIP.Here = append(byIP.Here, hns.Pod{Namespace: p.Namespace, Name: p.Name, IPs: p.IPs})
	}
	fromRuntime := map[string]int{
		"endpoint named": 24, "endpoint none": 2, "endpoint unknown": 14, "namespace named": 24,
		"balancer unknown": 120,
	}
	for name, c := range map[string]struct {
		known hns.Known
		want  map[string]int
	}{
		"no owners": {hns.Known{}, map[string]int{"endpoint unknown": 40, "namespace unknown": 24,
			"balancer unknown": 120}},
		"the runtime":               {runtime, fromRuntime},
		"its sandboxes' IDs alone":  {byName, fromRuntime},
		"its pods' addresses alone": {byIP, fromRuntime},
		"the cluster": {hns.Known{Everywhere: v.Known.Everywhere, Services: v.Known.Services, Cluster: true},
			map[string]int{"endpoint named": 38, "endpoint none": 2, "namespace named": 24, "balancer named": 120}},
		"both": {v.Known, map[string]int{"endpoint named": 38, "endpoint none": 2, "namespace named": 24,
			"balancer named": 120}},
	} {
		if got := whose(c.known); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSelect(t *testing.T) {
	s := calico(t).State
	for name, c := range map[string]struct {
		filter                                     hns.Filter
		networks, endpoints, balancers, namespaces int
	}{
		"all":                  {hns.Filter{}, 3, 40, 120, 24},
		"a network":            {hns.Filter{Network: "calico"}, 1, 40, 119, 24}, // all but the one without endpoints
		"a network without":    {hns.Filter{Network: "nat"}, 1, 0, 0, 0},
		"a network's ID":       {hns.Filter{Network: strings.ToLower(hnstest.ID("network nat")[:8])}, 1, 0, 0, 0},
		"no such network":      {hns.Filter{Network: "flannel"}, 0, 0, 0, 0},
		"a Service":            {hns.Filter{IP: netip.MustParseAddr("10.96.0.10")}, 1, 2, 3, 0},
		"a Service of nothing": {hns.Filter{IP: netip.MustParseAddr("10.96.0.77")}, 0, 0, 1, 0},
		"the source VIP":       {hns.Filter{Network: "Calico", IP: netip.MustParseAddr("192.168.71.66")}, 1, 1, 0, 0},
	} {
		got := s.Select(c.filter)
		switch {
		case len(got.Networks) != c.networks:
			t.Errorf("len(got.Networks) = %v, want %v: %+v", len(got.Networks), c.networks, got.Networks)
		case len(got.Endpoints) != c.endpoints:
			t.Errorf("len(got.Endpoints) = %v, want %v: %+v", len(got.Endpoints), c.endpoints, got.Endpoints)
		case len(got.LoadBalancers) != c.balancers:
			t.Errorf("len(got.LoadBalancers) = %v, want %v: %+v", len(got.LoadBalancers), c.balancers,
				got.LoadBalancers)
		case len(got.Namespaces) != c.namespaces:
			t.Errorf("len(got.Namespaces) = %v, want %v; %s: %d networks, %d endpoints, %d load balancers, %d "+
				"namespaces", len(got.Namespaces), c.namespaces, name, len(got.Networks), len(got.Endpoints),
				len(got.LoadBalancers), len(got.Namespaces))
		}
	}
	pod := s.Select(hns.Filter{IP: netip.MustParseAddr("192.168.71.70")})
	switch {
	case len(pod.Networks) != 1:
		t.Errorf("len(pod.Networks) = %v, want 1: %+v", len(pod.Networks), pod.Networks)
	case len(pod.Endpoints) != 1:
		t.Errorf("len(pod.Endpoints) = %v, want 1: %+v", len(pod.Endpoints), pod.Endpoints)
	case len(pod.Namespaces) != 1:
		t.Errorf("len(pod.Namespaces) = %v, want 1: %+v", len(pod.Namespaces), pod.Namespaces)
	case len(pod.LoadBalancers) == 0:
		t.Errorf("len(pod.LoadBalancers) = 0; a pod: %d networks, %d endpoints, %d load balancers, %d namespaces",
			len(pod.Networks), len(pod.Endpoints), len(pod.LoadBalancers), len(pod.Namespaces))
	}
}

func TestPoliciesInWords(t *testing.T) {
	for _, c := range []struct{ kind, settings, want string }{
		{"ACL", `{"Action":"Block","Direction":"In","RemoteAddresses":"10.0.0.0/8,172.16.0.1","Protocols":"6,17",` +
			`"LocalPorts":"80","RemotePorts":"","Priority":500}`,
			"block in tcp, udp from 10.0.0.0/8, 172.16.0.1 to port 80 (priority 500)"},
		{"ACL", `{"Action":"Allow","Direction":"Out","RemoteAddresses":"10.0.0.0/8","RemotePorts":"443",` +
			`"Priority":"7"}`, `allow out to 10.0.0.0/8 port 443 (priority "7")`},
		{"OutBoundNAT", `{"VirtualIP":"10.1.2.3","Exceptions":["a","b"]}`,
			"hides its address behind 10.1.2.3, except to a, b"},
		{"PortMapping", `{"Protocol":6,"InternalPort":80,"ExternalPort":8080}`, "port 8080/tcp goes to its port 80"},
		{"QOS", `{"MaximumOutgoingBandwidthInBytes":1000000}`, "sends at most 1.0 MB/s"},
		{"SDNRoute", `{"DestinationPrefix":"10.96.0.0/12","NeedEncap":true}`, "routes 10.96.0.0/12, encapsulated"},
		{"VSID", `{"IsolationId":4096}`, "VSID 4096"},
		{"HostRoute", ``, "the node itself reaches it"},
		{"HostRoute", `null`, "the node itself reaches it"},
		{"Brand New", `{"A": 1}`, `{"A":1}`},
		{"ACL", `["not", "an object"]`, `["not","an object"]`},
	} {
		if got := (hns.Policy{Type: c.kind, Settings: json.RawMessage(c.settings)}).Words(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.settings, got, c.want)
		}
	}
}

// An object with a field of an unknown form, or a text that is no object, does not hide the others.
func TestParseListsUnreadableObjects(t *testing.T) {
	state := hns.Parse(map[platform.NetworkKind][][]byte{platform.HNSEndpoints: {
		[]byte(`{"ID":"a","MacAddress":"00-15"}`),
		[]byte(`{"ID":"b","Name":7,"Flags":"x","MacAddress":"00-16"}`),
		[]byte(`<html>`),
	}})
	var macs []string
	for _, e := range state.Endpoints {
		macs = append(macs, e.ID+" "+e.MAC)
	}
	if !slices.Equal(macs, []string{"A 00-15", "B 00-16"}) {
		t.Errorf("endpoints: %v", macs)
	}
	var unreadable []string
	for _, u := range state.Unreadable {
		unreadable = append(unreadable, u.String())
	}
	if len(unreadable) != 2 || unreadable[0] != "endpoints B: Flags is a string, Name is a number" ||
		!strings.HasPrefix(unreadable[1], "endpoints without an ID: invalid character '<'") {
		t.Errorf("unreadable: %q", unreadable)
	}
	text, err := json.Marshal(state)
	var again hns.State
	if err != nil || json.Unmarshal(text, &again) != nil || len(again.Unreadable) != 2 {
		t.Errorf("encoded: %v, %s", err, text)
	}
}

// The service's objects may be incomplete.
func TestSparseObjects(t *testing.T) {
	state := hns.Parse(map[platform.NetworkKind][][]byte{
		platform.HNSNetworks: {[]byte(`{}`)},
		platform.HNSEndpoints: {[]byte(`{"HostComputeNetwork":"gone",` +
			`"HostComputeNamespace":"00000000-0000-0000-0000-000000000000"}`)},
		platform.HNSLoadBalancers: {[]byte(`{"HostComputeEndpoints":["gone"]}`)},
		platform.HNSNamespaces:    {[]byte(`{"Resources":[{"Type":"Endpoint","Data":{"Id":"gone"}}]}`)},
	})
	v := hns.View{State: state, All: state}
	if n := state.Networks[0]; n.Type != "NAT" {
		t.Errorf("a network without a type is %s", n.Type)
	}
	if e := state.Endpoints[0]; e.Namespace != "" {
		t.Errorf("the namespace of nothing is %s", e.Namespace)
	}
	if row := v.LoadBalancers().Rows[0]; row[3] != "GONE (not listed)" {
		t.Errorf("a backend that is gone: %q", row)
	}
	var out bytes.Buffer
	if err := v.Graph("node").SVG(&out); err != nil || !strings.Contains(out.String(), "no network listed") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestNetworksAreInNaturalOrder(t *testing.T) {
	state := hns.Parse(map[platform.NetworkKind][][]byte{platform.HNSNetworks: {[]byte(`{"Name":"vlan10"}`),
		[]byte(`{"Name":"vlan2"}`)}})
	switch {
	case len(state.Networks) != 2:
		t.Errorf("len(state.Networks) = %v, want 2: %+v", len(state.Networks), state.Networks)
	case state.Networks[0].Name != "vlan2":
		t.Errorf("state.Networks[0].Name = %q, want %q; %+v", state.Networks[0].Name, "vlan2", state.Networks)
	}
}

func TestGraphs(t *testing.T) {
	g := calico(t).Graph("win-1")
	var svg bytes.Buffer
	if err := g.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	golden(t, "calico.svg", svg.Bytes())

	lines := 0
	for _, b := range g.Balanced {
		lines += len(b.Endpoints)
	}
	counted := elements(t, svg.Bytes())
	if counted["path"] != lines || counted["rect"] != len(g.Networks)+40+len(g.Balanced) {
		t.Errorf("%d lines and %d boxes, for %d bundles with %d ends", counted["path"], counted["rect"],
			len(g.Balanced), lines)
	}
	if len(g.Balanced) > hnstest.LoadBalancers/2 {
		t.Errorf("%d bundles of load balancers: too many to read", len(g.Balanced))
	}
}

// elements counts the elements of an XML document, none of which may refer to another
// document.
func elements(t *testing.T, document []byte) map[string]int {
	t.Helper()
	count := map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatal(err)
		}
		if begin, ok := token.(xml.StartElement); ok {
			count[begin.Name.Local]++
			for _, a := range begin.Attr {
				if strings.Contains(a.Name.Local, "href") || a.Name.Local == "src" {
					t.Errorf("<%s> refers to %s", begin.Name.Local, a.Value)
				}
			}
		}
	}
}

// Names are arbitrary: they cannot break out of the SVG's text.
func TestGraphOfHostileNames(t *testing.T) {
	const name = `</text><script>"\` + "\n" + `x`
	state := hns.Parse(map[platform.NetworkKind][][]byte{
		platform.HNSNetworks:  {mustJSON(t, map[string]any{"ID": "n", "Name": name})},
		platform.HNSEndpoints: {mustJSON(t, map[string]any{"ID": "e", "Name": name, "HostComputeNetwork": "n"})},
	})
	g := hns.View{State: state, All: state}.Graph(name)
	var svg bytes.Buffer
	if err := g.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	if elements(t, svg.Bytes())["script"] != 0 {
		t.Error("a name became an element")
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

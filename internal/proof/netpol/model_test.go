package netpol_test

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/proof/policy"
)

// standard returns the standard model with TCP and UDP.
func standard(t *testing.T, pods int) netpol.Model {
	t.Helper()
	m, err := netpol.Standard(pods, corev1.ProtocolTCP, corev1.ProtocolUDP)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// load writes a file with policies, and loads it.
func load(t *testing.T, text string) (netpol.Case, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return netpol.Load([]string{path}, nil)
}

// Each standard case denies some cells and allows some from and to its pods, and says what it proves.
func TestStandardCasesDecide(t *testing.T) {
	all, err := netpol.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, protocols := range [][]corev1.Protocol{{"TCP", "UDP"}, policy.Protocols()} {
		model, err := netpol.Standard(netpol.MinPods, protocols...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := netpol.Explain(model, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Cases {
			if c.Denied == 0 || c.Denied == c.Cells || c.Proves == "" {
				t.Errorf("%s: %d of %d cells are denied; proves %q", c.Name, c.Denied, c.Cells, c.Proves)
			}
		}
	}
}

// The tables of three cases, as a person reads the policies.
func TestTablesOfCases(t *testing.T) {
	all, err := netpol.Cases()
	if err != nil {
		t.Fatal(err)
	}
	e, err := netpol.Explain(standard(t, netpol.MinPods), all)
	if err != nil {
		t.Fatal(err)
	}
	open := []string{"-.....", ".-....", "..-...", "...-..", "....-.", ".....-"}
	want := map[string][]netpol.Table{
		"namespace-and-pod": {{Ports: []string{"TCP/8080", "TCP/8081", "UDP/8080", "UDP/8081"},
			Rows: []string{"-x....", "x-....", "xx-...", "...-..", "xx..-.", "xx...-"}}},
		"port-range": {{Ports: []string{"TCP/8080"}, Rows: open}, {Ports: []string{"TCP/8081", "UDP/8080", "UDP/8081"},
			Rows: []string{"-x....", "x-....", "xx-...", "xx.-..", "xx..-.", "xx...-"}}},
		"ip-block-except": {{Ports: []string{"TCP/8080", "TCP/8081", "UDP/8080", "UDP/8081"},
			Rows: []string{"-.x...", ".-....", "..-...", "...-..", "....-.", ".....-"}}},
	}
	for _, c := range e.Cases {
		if tables, ok := want[c.Name]; ok {
			if diff := cmp.Diff(tables, c.Tables); diff != "" {
				t.Errorf("%s (-want +got)\n%s", c.Name, diff)
			}
		}
	}
}

// The pods of a derived model match each selector, and others do not.
func TestDerive(t *testing.T) {
	c, err := load(t, `
apiVersion: v1
kind: List
items:
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: web, namespace: shop, uid: "1", resourceVersion: "7"}
  spec:
    podSelector: {matchExpressions: [{key: app, operator: In, values: [web, api]}, {key: old, operator: DoesNotExist}]}
    ingress:
    - from: [{podSelector: {matchLabels: {app: cart}}, namespaceSelector: {matchLabels: {team: front}}}]
      ports: [{port: 80, endPort: 90}, {port: dns, protocol: UDP}, {port: dns}, {port: 8080}]
    - from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
    - from: [{podSelector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}]}}]
- kind: Pod
`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := netpol.Derive(c.Policies, netpol.MaxPods)
	if err != nil {
		t.Fatal(err)
	}
	var pods, ports []string
	for _, p := range m.Pods {
		pods = append(pods, p.Name())
	}
	for _, p := range m.Ports {
		ports = append(ports, p.String())
	}
	want := []string{"shop/web", "shop/other", "front/cart", "front/other", "monitoring/other", "elsewhere/cart",
		"elsewhere/other"}
	if diff := cmp.Diff(want, pods); diff != "" {
		t.Errorf("pods (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"TCP/80", "TCP/90", "UDP/dns", "TCP/8080", "TCP/8081", "UDP/8081"}, ports); diff != "" {
		t.Errorf("ports (-want +got)\n%s", diff)
	}
	if got := m.Namespaces[1].Labels["team"]; got != "front" {
		t.Errorf("the namespaces are %+v", m.Namespaces)
	}
	if _, err := netpol.Derive(c.Policies, 3); err == nil {
		t.Error("7 pods are more than 3")
	}
}

func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"kind: Pod":                  "has no NetworkPolicy",
		"a: [":                       "document 1: ",
		strings.Repeat("#", 1<<20+1): "has more than 1048576 bytes",
		"kind: List\nitems: [[1]]":   "document 1: ",
		"#\n---\nkind: List\nitems:\n- kind: Pod\n- kind: NetworkPolicy\n  apiVersion: networking.k8s.io/v1\n  spec:\n" +
			"    ingress:\n    - ports: []\n    - form: []": ":10: items[1].spec.ingress[1].form: unknown field form; " +
			"`kubectl explain networkpolicy.spec.ingress` lists the known ones",
		"{kind: NetworkPolicy, apiVersion: networking.k8s.io/v1, metadata: {name: a}, spec: {podSelector: 1}}": "podSelector",
		"{kind: NetworkPolicy, apiVersion: networking.k8s.io/v1, spec: {podSelector: {}}}":                     "default/: metadata.name",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v lacks %q", text, err, want)
		}
	}
}

// Whatever a file has, its policies are explained or refused.
func FuzzExplain(f *testing.F) {
	all, err := netpol.Cases()
	if err != nil {
		f.Fatal(err)
	}
	list, err := netpol.NewList(all)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range list.Cases {
		f.Add([]byte(c.Manifest))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := netpol.Load([]string{"-"}, bytes.NewReader(text))
		if err != nil {
			return
		}
		m, err := netpol.Derive(c.Policies, 12)
		if err != nil {
			return
		}
		for i := range m.Pods {
			m.Pods[i].Address = netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		}
		e, err := netpol.Explain(m, []netpol.Case{c})
		if err == nil && len(e.Cases) != 1 {
			t.Errorf("%+v", e)
		}
	})
}

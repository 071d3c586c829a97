package policy_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/proof/policy"
)

// world returns six pods in two namespaces. Each pod has the ports web (TCP 80) and dns (UDP 53).
func world() []policy.Pod {
	var all []policy.Pod
	for i, namespace := range []string{"x", "y"} {
		for j, name := range []string{"a", "b", "c"} {
			all = append(all, policy.Pod{Namespace: namespace, Name: name,
				Labels:          map[string]string{"pod": name, "odd": fmt.Sprint(j % 2)},
				NamespaceLabels: map[string]string{"ns": namespace},
				Address:         netip.AddrFrom4([4]byte{10, 0, byte(i), byte(j)}),
				Ports: []policy.Port{{Name: "web", Number: 80, Protocol: corev1.ProtocolTCP},
					{Name: "dns", Number: 53, Protocol: corev1.ProtocolUDP}}})
		}
	}
	return all
}

// worldWithNodes returns the pods of world on two nodes, and two pods that use the network of these nodes.
func worldWithNodes() []policy.Pod {
	all := world()
	for i := range all {
		all[i].Node = fmt.Sprint(i % 2)
	}
	for i, p := range []policy.Pod{all[0], all[4]} {
		p.Name, p.Host, p.Node = "host", true, fmt.Sprint(i)
		all = append(all, p)
	}
	return all
}

// verdictOf returns allowed, denied or undefined.
func verdictOf(v policy.Verdict) string {
	switch {
	case v.Undefined():
		return "undefined"
	case v.Allowed():
		return "allowed"
	}
	return "denied"
}

// connections returns all connections between the pods.
func connections(pods []policy.Pod) []policy.Connection {
	var all []policy.Connection
	for _, from := range pods {
		for _, to := range pods {
			for _, port := range []int32{53, 80, 81} {
				for _, protocol := range policy.Protocols() {
					all = append(all, policy.Connection{From: from, To: to, Port: port, Protocol: protocol})
				}
			}
		}
	}
	return all
}

// allowed returns the connections that policies allow, as "x/a→y/b TCP/80", among those of the given
// protocol and port.
func allowed(t *testing.T, text, wanted string) []string {
	t.Helper()
	var all []networkingv1.NetworkPolicy
	for i, doc := range strings.Split(text, "\n---\n") {
		p := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: fmt.Sprintf("p%d", i)}}
		if err := yaml.UnmarshalStrict([]byte(doc), &p.Spec); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	set, err := policy.New(all)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, c := range connections(world()) {
		port := fmt.Sprintf("%s/%d", c.Protocol, c.Port)
		if c.From.Namespace+c.From.Name != c.To.Namespace+c.To.Name && port == wanted && set.Decide(c).Allowed() &&
			(c.To.Namespace+c.To.Name == "xa" || c.From.Namespace+c.From.Name == "xa") {
			got = append(got, fmt.Sprintf("%s/%s→%s/%s", c.From.Namespace, c.From.Name, c.To.Namespace, c.To.Name))
		}
	}
	return got
}

// The definition in examples: which connections from and to pod x/a pass.
func TestExamples(t *testing.T) {
	out := []string{"x/a→x/b", "x/a→x/c", "x/a→y/a", "x/a→y/b", "x/a→y/c"}
	in := []string{"x/b→x/a", "x/c→x/a", "y/a→x/a", "y/b→x/a", "y/c→x/a"}
	with := func(more ...string) []string { return append(slices.Clone(out), more...) }
	const forA, nl = "podSelector: {matchLabels: {pod: a}}", "\n"
	for name, c := range map[string]struct {
		text, port string
		want       []string
	}{
		"deny ingress":                           {forA, "TCP/80", out},
		"ingress is empty":                       {forA + nl + "ingress: []", "TCP/80", out},
		"deny egress alone":                      {forA + nl + "policyTypes: [Egress]", "TCP/80", in},
		"egress: [] is no rule":                  {forA + nl + "egress: []", "TCP/80", out},
		"a rule for egress isolates ingress too": {forA + nl + "egress: [{}]", "TCP/80", out},
		"an empty rule allows all":               {forA + nl + "ingress: [{}]", "TCP/80", with(in...)},
		"another pod": {"podSelector: {matchLabels: {pod: b}}", "TCP/80",
			append(slices.Clone(out[1:]), in...)},
		"pods of the own namespace": {forA + nl + "ingress: [{from: [{podSelector: {matchLabels: {pod: b}}}]}]", "TCP/80",
			with("x/b→x/a")},
		"namespace and pod": {forA + nl +
			"ingress: [{from: [{podSelector: {matchLabels: {pod: b}}, namespaceSelector: {matchLabels: {ns: 'y'}}}]}]",
			"TCP/80", with("y/b→x/a")},
		"namespace or pod": {forA + nl +
			"ingress: [{from: [{podSelector: {matchLabels: {pod: b}}}, {namespaceSelector: {matchLabels: {ns: 'y'}}}]}]",
			"TCP/80", with("x/b→x/a", "y/a→x/a", "y/b→x/a", "y/c→x/a")},
		"the port's protocol is TCP": {forA + nl + "ingress: [{ports: [{port: 53}]}]", "UDP/53", out},
		"a protocol without a port": {forA + nl + "policyTypes: [Egress]" + nl + "egress: [{ports: [{protocol: SCTP}]}]",
			"SCTP/81", with(in...)},
		"a named port": {forA + nl + "ingress: [{ports: [{port: dns, protocol: UDP}]}]",
			"UDP/53", with(in...)},
		"a named port of another protocol": {forA + nl + "ingress: [{ports: [{port: dns}]}]", "UDP/53", out},
		"the end of a range": {forA + nl + "ingress: [{ports: [{port: 60, endPort: 80}]}]", "TCP/80",
			with(in...)},
		"after the end": {forA + nl + "ingress: [{ports: [{port: 60, endPort: 80}]}]", "TCP/81", out},
		"a block without parts": {forA + nl +
			"ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/16, except: [10.0.1.0/31]}}]}]", "TCP/80",
			with("x/b→x/a", "x/c→x/a", "y/c→x/a")},
		"two policies add up": {"podSelector: {}\n---\n" + forA + nl + "ingress: [{from: [{podSelector: {}}]}]", "TCP/80",
			[]string{"x/a→y/a", "x/a→y/b", "x/a→y/c", "x/b→x/a", "x/c→x/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]bool{}
			for _, w := range c.want {
				want[w] = true
			}
			got := map[string]bool{}
			for _, g := range allowed(t, c.text, c.port) {
				got[g] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// All faults of a policy are found at once, each with its field.
func TestFaults(t *testing.T) {
	name, no, sctp := intstr.FromString("web"), intstr.FromInt32(0), corev1.Protocol("ICMP")
	end, port := int32(10), intstr.FromInt32(20)
	_, err := policy.New([]networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}},
			PolicyTypes: []networkingv1.PolicyType{"Both"},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{}, {PodSelector: &metav1.LabelSelector{},
					IPBlock: &networkingv1.IPBlock{}}, {IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0"}},
					{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"11.0.0.0/16", "10.0.0.0/8", "x"}}}},
				Ports: []networkingv1.NetworkPolicyPort{{Port: &name, EndPort: &end}, {EndPort: &end}, {Port: &no},
					{Port: &port, EndPort: &end, Protocol: &sctp}},
			}},
		}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "x"}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"x/p: spec.podSelector: ",
		`spec.policyTypes: there is no type "Both"`,
		"spec.ingress[0].from[0]: the peer is empty",
		"from[1]: an ipBlock excludes selectors",
		`from[2].ipBlock.cidr: "10.0.0.0"`,
		"from[3].ipBlock.except[0]: 11.0.0.0/16 is no part of 10.0.0.0/8",
		"except[1]: 10.0.0.0/8 is no part",
		`except[2]: "x"`,
		"ports[0].endPort: a range begins with a number",
		"ports[1].endPort: a range begins with port",
		"ports[2].port: 0 is no port",
		`ports[3].protocol: there is no protocol "ICMP"`,
		"ports[3].endPort: 10 is not in the range",
		"x/: metadata.name",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

// On random policies, the engine and a slow evaluator that is written from the definition agree on every
// connection.
func TestAgreesWithTheDefinition(t *testing.T) {
	const samples = 400
	pods, count := worldWithNodes(), map[string]int{}
	for seed := range uint64(samples) {
		g := generator{rand.New(rand.NewPCG(seed, 39))}
		var all []networkingv1.NetworkPolicy
		for i := range 1 + g.IntN(3) {
			all = append(all, g.policy(i))
		}
		set, err := policy.New(all)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, c := range connections(pods) {
			got, want := set.Decide(c), definition(all, c)
			if verdictOf(got) != want {
				text, _ := yaml.Marshal(all)
				t.Fatalf("seed %d: %s/%s → %s/%s %s/%d: the engine: %+v, the definition: %v\n%s", seed,
					c.From.Namespace, c.From.Name, c.To.Namespace, c.To.Name, c.Protocol, c.Port, got, want, text)
			}
			count[want]++
		}
	}
	total := samples * len(connections(pods))
	for _, verdict := range []string{"allowed", "denied", "undefined"} {
		if n := count[verdict]; n < total/20 || n > total*9/10 {
			t.Errorf("%d of %d connections are %s, so the generator proves little", n, total, verdict)
		}
	}
}

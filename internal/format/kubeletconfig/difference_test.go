package kubeletconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
)

func TestChanges(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"nothing":         {"a: 1\nb: [x]\n", "b:\n- x\na: 1\n", ""},
		"a value":         {"clusterDomain: a\n", "clusterDomain: b\n", "clusterDomain: a → b\n"},
		"a list":          {"clusterDNS: [10.96.0.10]\n", "clusterDNS: [10.96.0.53]\n", `clusterDNS: ["10.96.0.10"] → ["10.96.0.53"]` + "\n"},
		"a gate goes":     {"featureGates: {A: true, B: true}\n", "featureGates: {B: true}\n", "featureGates.A: true → not set\n"},
		"all gates go":    {"featureGates: {A: true}\n", "{}\n", "featureGates.A: true → not set\n"},
		"a gate comes":    {"", "featureGates: {A: false}\n", "featureGates.A: not set → false (trivial)\n"},
		"dots in a name":  {"evictionHard: {imagefs.available: 1%}\n", "evictionHard: {imagefs.available: 2%}\n", "evictionHard.imagefs.available: 1% → 2%\n"},
		"a zero duration": {"x: 0s\n", "z: 0s\n", "x: 0s → not set (trivial)\nz: not set → 0s (trivial)\n"},
		"a secret":        {"staticPodURLHeader: {A: [s3cret]}\n", "", "staticPodURLHeader.A: (hidden) → not set\n"},
		"another type":    {"a: {b: 1}\n", "a: 2\n", `a: {"b":1} → 2` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := kubeletconfig.Changes([]byte(test.before), []byte(test.after))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, c := range all {
				got += c.String()
				if c.Trivial() {
					got += " (trivial)"
				}
				got += "\n"
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			applied, err := kubeletconfig.Apply([]byte(test.before), all)
			if err != nil {
				t.Fatal(err)
			}
			if rest, err := kubeletconfig.Changes(applied, []byte(test.after)); err != nil || len(rest) > 0 {
				t.Errorf("applied, it still differs: %v %v", rest, err)
			}
		})
	}
}

// The settings of a user stay when the cluster's part changes.
func TestChangesOfAUserStay(t *testing.T) {
	const base = "clusterDNS: [10.96.0.10]\nmaxPods: 110\nfeatureGates: {Old: true}\nevictionHard: {memory.available: 1Gi}\n"
	const edited = "clusterDNS: [10.96.0.10]\nmaxPods: 40\nfeatureGates: {Old: true, Mine: true}\n"
	const next = "clusterDNS: [10.96.0.53]\nmaxPods: 120\nevictionHard: {memory.available: 2Gi}\n"
	hand, err := kubeletconfig.Changes([]byte(base), []byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	got, err := kubeletconfig.Apply([]byte(next), hand)
	if err != nil {
		t.Fatal(err)
	}
	const want = "clusterDNS:\n- 10.96.0.53\nevictionHard: {}\nfeatureGates:\n  Mine: true\nmaxPods: 40\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

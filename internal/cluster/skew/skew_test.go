package skew_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster/skew"
)

// The examples of https://kubernetes.io/releases/version-skew-policy/ and of kubeadm's policy.
func TestViolations(t *testing.T) {
	for name, test := range map[string]struct {
		versions map[skew.Component]string
		want     []string
	}{
		"all the same": {versions: map[skew.Component]string{skew.APIServer: "v1.36.3", skew.Kubelet: "1.36.0",
			skew.KubeProxy: "1.36.9", skew.Kubeadm: "1.36.3", skew.Node: "1.36.3"}},
		"three behind":     {versions: map[skew.Component]string{skew.APIServer: "1.36.3", skew.Kubelet: "1.33.0"}},
		"nothing is known": {},
		"kubelet is newer": {
			versions: map[skew.Component]string{skew.APIServer: "1.35.9", skew.Kubelet: "1.36.0"},
			want:     []string{"kubelet is newer than the API server: 1.32 to 1.35"},
		},
		"four behind": {
			versions: map[skew.Component]string{skew.APIServer: "1.36.3", skew.Kubelet: "1.32.0"},
			want:     []string{"kubelet is 4 minor versions behind the API server: 1.33 to 1.36"},
		},
		"an old kubelet, three behind": {
			versions: map[skew.Component]string{skew.APIServer: "1.27.0", skew.Kubelet: "1.24.0"},
			want:     []string{"kubelet is 3 minor versions behind the API server: 1.25 to 1.27"},
		},
		"kube-proxy is ahead of kubelet": {versions: map[skew.Component]string{skew.APIServer: "1.36.3",
			skew.Kubelet: "1.33.0", skew.KubeProxy: "1.36.0"}},
		"an old kube-proxy is behind kubelet": {
			versions: map[skew.Component]string{skew.Kubelet: "1.27.0", skew.KubeProxy: "1.24.0"},
			want:     []string{"kube-proxy is 3 minor versions behind kubelet: 1.25 to 1.29"},
		},
		"kubelet before kubeadm": {
			versions: map[skew.Component]string{skew.Kubelet: "1.36.0", skew.Kubeadm: "1.35.0"},
			want:     []string{"kubelet is newer than kubeadm: 1.32 to 1.35"},
		},
		"an upgrade by one": {versions: map[skew.Component]string{skew.Kubeadm: "1.36.0", skew.Node: "1.35.0"}},
		"an upgrade that skips one": {
			versions: map[skew.Component]string{skew.Kubeadm: "1.36.0", skew.Node: "1.34.0"},
			want:     []string{"kubeadm is 2 minor versions ahead of the node: 1.34 to 1.35, works"},
		},
		"a downgrade": {
			versions: map[skew.Component]string{skew.Kubeadm: "1.35.0", skew.Node: "1.36.0"},
			want:     []string{"kubeadm is 1 minor version behind the node: 1.36 to 1.37"},
		},
		"another major version": {
			versions: map[skew.Component]string{skew.APIServer: "2.0.0", skew.Kubelet: "1.36.0"},
			want:     []string{"kubelet is of another major version than the API server: 2.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			versions := skew.Versions{}
			for component, text := range test.versions {
				versions[component] = version.MustParseGeneric(text)
			}
			var got []string
			for _, v := range versions.Violations() {
				text := v.String() + ": " + v.Allowed()
				if v.Works() {
					text += ", works"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

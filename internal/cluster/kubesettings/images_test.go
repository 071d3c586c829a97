package kubesettings_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
)

func TestImageGates(t *testing.T) {
	const script = "$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"
	both := []string{"WinDSR", "WinOverlay"}
	for _, test := range []struct {
		image, command string
		want           []string
	}{
		{"docker.io/sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess", script, both},
		{"ghcr.io/kubernetes-sigs/sig-windows/kube-proxy:v1.37.2-calico-hostprocess@sha256:0a", `%CONTAINER_SANDBOX_MOUNT_POINT%\kube-proxy\start.ps1`, both},
		{"sigwindowstools/kube-proxy:v1.32.1-flannel-hostprocess", script, []string{"WinOverlay"}},
		{"sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess", `%CONTAINER_SANDBOX_MOUNT_POINT%\swdt\kube-proxy\start.ps1`, nil}, // swdt's own
		{"sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess", "", nil},
		{"example.com/proxy:v1.36.3-calico-hostprocess", script, nil},
	} {
		if diff := cmp.Diff(test.want, kubesettings.ImageGates(test.image, []string{"-File", test.command})); diff != "" {
			t.Errorf("%s %s: -want +got:\n%s", test.image, test.command, diff)
		}
	}
}

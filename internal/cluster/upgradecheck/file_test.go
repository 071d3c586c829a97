package upgradecheck_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// Files of variables of other programs have no arguments of kubelet.
func TestFilesOfVariables(t *testing.T) {
	for name, test := range map[string]struct {
		file, text string
		want       int
	}{
		"another program":    {"docker.env", "APP_ARGS=\"--log-level=debug\"\nKUBE_VERSION=--x\n", 0},
		"kubeadm's file":     {"kubeadm-flags.env", "KUBELET_KUBEADM_ARGS=\"--node-ip=10.0.0.4\"\n", 1},
		"another file":       {"node.env", "export KUBELET_EXTRA_ARGS='--node-ip=10.0.0.4 --v=2'\nOTHER=--x\n", 2},
		"anything kubeadm's": {"kubeadm-flags.env", "ARGS=--node-ip=10.0.0.4\n", 1},
	} {
		r := upgradecheck.NewReader(load(t))
		r.File(test.file, []byte(test.text))
		if len(r.Settings) != test.want {
			t.Errorf("%s: %+v, want %d", name, r.Settings, test.want)
		}
	}
}

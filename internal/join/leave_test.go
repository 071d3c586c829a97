package join_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// A machine that joins, leaves, joins another cluster and leaves it is as it was before, except for what docs/guides/join.md
// names: files, folders, services with their recovery actions and variables, HNS networks, dynamic ports, PATH, the hosts
// file and the firewall.
func TestJoinLeaveAndJoinAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.planted(platform.ServiceConfig{Name: "kubelet", CommandLine: `C:\mine\kubelet.exe`,
			DisplayName: "Another's kubelet", Description: "Of another program.", Recovery: &platform.Recovery{
				Actions: []platform.RecoveryAction{{Kind: platform.RecoverByCommand, After: time.Second}}}})
		l.spec().Proxy = &v1alpha1.Proxy{HTTPS: "http://proxy.example:3128"}
		before := l.state()
		for _, network := range []string{"Calico", "External"} {
			l.mustJoin()
			l.isReady()
			l.plantNetwork(network, "L2Bridge", "A0000000-0000-0000-0000-000000000002")
			if results, err := l.resetWith(resetAll(l)); err != nil {
				t.Fatalf("reset: %v\n%s", err, table(results))
			}
			l.isAsBefore(before)
			l.moveTo(newControlOn(t, l.control.network, apiserver.Options{NodeGrace: 3 * time.Second}))
		}
	})
}

// planted registers a service of another program.
func (l *lab) planted(config platform.ServiceConfig) {
	l.t.Helper()
	if err := l.Machine.Process("another").Services.Create(l.t.Context(), config); err != nil {
		l.t.Fatal(err)
	}
}

// moveTo makes another cluster the one that the machine joins.
func (l *lab) moveTo(other *control) {
	l.t.Helper()
	kubeconfig := filepath.Join(l.t.TempDir(), "kubeconfig")
	if err := other.WriteKubeconfig(kubeconfig); err != nil {
		l.t.Fatal(err)
	}
	opened, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig, Dialer: other.network})
	if err != nil {
		l.t.Fatal(err)
	}
	l.control, l.cluster = other, opened
}

package ability_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/ability"
	"github.com/swdt-dev/swdt/internal/ui"
)

// probes returns all probes but that of policies, which needs real probes in its pods.
func probes() []string {
	return slices.DeleteFunc(ability.Names(), func(name string) bool { return name == ability.NetworkPolicy })
}

// A healthy node proves all that the cluster has.
func TestAHealthyNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(broken{}, driver("disk.csi", corev1.PersistentVolumeReclaimDelete, "disk.csi")...)
		got := w.run(t.Context(), t, nil, probes()...)
		want := map[string]string{}
		for _, name := range probes() {
			want[name] = ability.Proved
		}
		want[ability.SMBVolume] = "notPossible: the cluster has no StorageClass of the CSI driver smb.csi.k8s.io"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"kubelet", "containerd", "reboot"}, w.restarted); diff != "" {
			t.Errorf("restarts (-want +got):\n%s", diff)
		}
	})
}

// Each probe fails if the cluster or the node is broken at the place that it is about, and names the cause.
func TestABrokenClusterFails(t *testing.T) {
	const kept, gone = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	for name, test := range map[string]struct {
		probe   string
		broken  broken
		objects []runtime.Object
		want    string
	}{
		"no CPU limit": {ability.CPULimit, broken{cpuLimit: true}, nil,
			"failed: a container with a CPU limit of 0.20 cores used 2.00 cores for 5s; "},
		"a busy node": {ability.CPULimit, broken{busy: true}, nil,
			"notPossible: the node is too busy: a container without a limit got 0.10 cores"},
		"no memory limit": {ability.MemoryLimit, broken{memoryLimit: true}, nil,
			"failed: a container with a memory limit of 256 MiB got 512 MiB; "},
		"a small node": {ability.MemoryLimit, broken{small: true}, nil,
			"notPossible: the node has too little memory: "},
		"the connection breaks": {ability.MemoryLimit, broken{execDies: true}, nil,
			"notRun: allocate 512 MiB: the probe in pod "},
		"the whole container ends": {ability.MemoryLimit, broken{containerDies: true}, nil, "proved"},
		"the limited pod does not start": {ability.MemoryLimit, broken{noStart: "limited"}, nil,
			"notRun: pod limited-1 on node win-1: "},

		"one pod gets all": {ability.SessionAffinity, broken{spread: true}, nil,
			"failed: 24 connections to a Service without session affinity all reached pod backend-1; "},
		"no affinity": {ability.SessionAffinity, broken{affinity: true}, nil,
			"failed: 12 connections to a Service with the session affinity ClientIP reached the pods backend-1 and backend-2; "},
		"another server": {ability.SessionAffinity, broken{stranger: true}, nil,
			"failed: http://10.96.0.10:80/hostname: the answer is not of a pod of the Service: router"},
		"no server": {ability.SessionAffinity, broken{noStart: "backend-2"}, nil, "notRun: pod backend-2 on node lin-1: "},
		"the node's address is seen": {ability.SourceAddress, broken{seen: winIP + ":1024"}, nil,
			"failed: a pod with the address 10.244.2.5 connects to a Service, and the pod behind it sees 10.0.0.2, " +
				"the address of node win-1; does kube-proxy run with --enable-dsr"},
		"no address is seen": {ability.SourceAddress, broken{seen: "you"}, nil,
			"failed: http://10.96.0.10:80/clientip: the answer is no address: you"},
		"a NodePort is closed": {ability.NodePort, broken{nodePort: true}, nil,
			"failed: wait for an answer of http://10.0.0.2:30080/hostname: "},

		"no driver": {ability.CSIVolume, broken{}, driver("disk.csi", gone),
			"notPossible: no StorageClass can be used on node win-1: fast has the driver disk.csi, which is not registered"},
		"volumes stay": {ability.CSIVolume, broken{}, driver("disk.csi", kept, "disk.csi"),
			"notPossible: no StorageClass can be used on node win-1: fast keeps its volumes"},
		"an SMB driver is no other": {ability.CSIVolume, broken{}, driver("smb.csi.k8s.io", gone, "smb.csi.k8s.io"),
			"notPossible: the cluster has no StorageClass of a CSI driver"},
		"an SMB driver": {ability.SMBVolume, broken{}, driver("smb.csi.k8s.io", gone, "smb.csi.k8s.io"), "proved"},
		"data are lost": {ability.SMBVolume, broken{reads: "old"}, driver("smb.csi.k8s.io", gone, "smb.csi.k8s.io"),
			`failed: the next pod reads other data from the volume than were written: "old"`},
		"a volume is not mounted": {ability.CSIVolume, broken{noStart: "disk-csi-1-writer"},
			driver("disk.csi", gone, "disk.csi"), "failed: pod disk-csi-1-writer on node win-1: "},

		"kubelet does not start": {ability.KubeletRestart, broken{restart: true}, nil,
			"failed: restart kubelet: the service kubelet ended with exit code 1067"},
		"the lease is old": {ability.KubeletRestart, broken{lease: true}, nil,
			"failed: after the restart of kubelet: wait for the node to be Ready: "},
		"no new pod starts": {ability.KubeletRestart, broken{noStart: "kubelet-after"}, nil,
			"failed: after the restart of kubelet: no new pod starts: pod kubelet-after-1 on node win-1: "},
		"a pod is gone": {ability.KubeletRestart, broken{lost: "gone"}, nil,
			"failed: after the restart of kubelet: pod kubelet-idle-1-2 was lost: it is gone"},
		"a pod was made again": {ability.KubeletRestart, broken{lost: "new"}, nil,
			"failed: after the restart of kubelet: pod kubelet-idle-1-2 was lost: another pod has its name"},
		"a container was started again": {ability.ContainerdRestart, broken{lost: "again"}, nil,
			"failed: after the restart of containerd: pod containerd-idle-1-2 did not keep running: its container was " +
				"started again"},
		"a container ended": {ability.ContainerdRestart, broken{lost: "ended"}, nil,
			"failed: after the restart of containerd: pod containerd-idle-1-2 was lost: its container ended with exit code " +
				"137 (OOMKilled)"},
		"a pod does not answer": {ability.ContainerdRestart, broken{lost: "mute"}, nil,
			"failed: after the restart of containerd: pod containerd-idle-1-2: wait for a command to run in the pod: "},
		"a pod sleeps after the reboot": {ability.Reboot, broken{sleeps: true}, nil,
			"failed: wait for pod survivor-1 to run again after the reboot: "},
		"nothing starts": {ability.ContainerdRestart, broken{noStart: "free"}, nil, "notRun: pod free-1 on node win-1: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := newWorld(test.broken, test.objects...).run(t.Context(), t, nil, test.probe)[test.probe]
				if !strings.HasPrefix(got, test.want) {
					t.Errorf("%s\nwant %s", got, test.want)
				}
			})
		})
	}
}

// Without a way to the node, nothing is restarted.
func TestNoWayToTheNode(t *testing.T) {
	for name, test := range map[string]struct {
		machine func(context.Context, cluster.Node, ui.Reporter) (ability.Machine, error)
		want    string
	}{
		"no node file": {nil, "notPossible: swdt has no way to the node: -c names its node file"},
		"another node file": {ability.Machines(nil, nil),
			"notPossible: no node file names node win-1: -c names one"},
		"no connection": {func(context.Context, cluster.Node, ui.Reporter) (ability.Machine, error) {
			return nil, errors.New("no route to host")
		}, "notRun: no route to host"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(broken{})
				got := w.run(t.Context(), t, func(o *ability.Options) { o.Machine = test.machine }, ability.KubeletRestart,
					ability.Reboot)
				want := map[string]string{ability.KubeletRestart: test.want, ability.Reboot: test.want}
				if diff := cmp.Diff(want, got); diff != "" || len(w.restarted) > 0 {
					t.Errorf("restarted %q (-want +got):\n%s", w.restarted, diff)
				}
			})
		})
	}
}

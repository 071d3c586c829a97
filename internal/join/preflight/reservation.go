package preflight

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// reservations are kubelet's settings that keep memory from pods: the flags, and their fields.
func reservations() map[string]string {
	return map[string]string{"system-reserved": "systemReserved", "kube-reserved": "kubeReserved"}
}

// needReservation returns the error of the cluster's configuration for kubelet, which may have a reservation.
func needReservation(f *facts) error {
	if f.cluster == nil || f.reserves() {
		return nil
	}
	if err := f.cluster.kubeletConfig.err; err != nil {
		return fmt.Errorf("%w: %w", errReportedElsewhere, err)
	}
	return nil
}

// lookAtReservation finds a node whose pods may be promised all of its memory. Windows has no OOM killer: it pages, and
// then programs fail to get memory, kubelet and containerd among them. Kubernetes' documentation recommends to reserve at
// least 2 GiB (kubernetes.io/docs/concepts/configuration/windows-resource-management), as WMCO does.
func lookAtReservation(f *facts) []finding.Finding {
	if f.reserves() || f.cluster == nil {
		return nil
	}
	if reserves, known := f.clusterReserves(); reserves || !known {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Info,
		What:     "no memory is reserved for Windows: pods may be promised all of it, and Windows has no OOM killer",
		Evidence: "neither systemReserved nor kubeReserved has memory; the machine has " + ui.Size(int64(f.node.machine.Memory)),
		Remedy:   "set spec.kubernetes.kubelet.configPatch: {systemReserved: {memory: 2Gi}}",
	}}
}

// reserves reports whether the node file reserves memory.
func (f *facts) reserves() bool {
	k := f.spec.Kubelet
	for flag, field := range reservations() {
		if strings.Contains(k.ExtraArgs[flag], "memory=") || hasMemory(k.ConfigPatch[field]) {
			return true
		}
	}
	return false
}

// clusterReserves reports whether the cluster's configuration for kubelet reserves memory. It is unknown if there is no
// such configuration that can be read, which the check kubelet-config reports.
func (f *facts) clusterReserves() (reserves, known bool) {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(f.cluster.kubeletConfig.value.Content), &config); err != nil || config["kind"] != "KubeletConfiguration" {
		return false, false
	}
	for _, field := range reservations() {
		if hasMemory(config[field]) {
			return true, true
		}
	}
	return false, true
}

func hasMemory(reservation any) bool {
	amounts, _ := reservation.(map[string]any)
	return amounts["memory"] != nil
}

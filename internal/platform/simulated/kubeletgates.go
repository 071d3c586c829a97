package simulated

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// goneGates maps feature gates to the first minor version whose source no longer has them (pkg/features/kube_features.go
// of k8s.io/kubernetes v1.33.13, v1.34.9, v1.35.6, v1.36.3, v1.37.2 and v1.38.0-beta.0). The simulation knows no other
// gates, and accepts any other name.
func goneGates() map[string]int {
	return map[string]int{
		"CPUManager": 33, "KubeProxyDrainingTerminatingNodes": 33, "LegacySidecarContainers": 34,
		"ComponentSLIs": 35, "PodIndexLabel": 35, "SizeMemoryBackedVolumes": 35,
		"MemoryManager": 36, "TopologyAwareHints": 36, "ServiceTrafficDistribution": 36,
		"SidecarContainers": 37, "AnyVolumeDataSource": 37, "WinDSR": 38, "WinOverlay": 38,
	}
}

// checkGates returns the error with which a kubelet ends that lacks a gate of its flags or of its configuration. The
// text names the flags in both cases (cmd/kubelet/app/server.go, component-base/featuregate/feature_gate.go).
func (c component) checkGates(config map[string]any) error {
	_, minor := versionNumbers(c.version)
	var names []string
	for pair := range strings.SplitSeq(c.flag("--feature-gates"), ",") {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	if gates, ok := config["featureGates"].(map[string]any); ok {
		names = append(names, sortedKeys(gates)...)
	}
	slices.Sort(names)
	for _, name := range names {
		if gone, ok := goneGates()[name]; ok && c.version != unknownVersion && minor >= gone {
			return fmt.Errorf("failed to set feature gates from initial flags-based config: unrecognized feature gate: %s",
				name)
		}
	}
	return nil
}

// kubeletYAML returns the fields of a configuration; none if it cannot be parsed.
func kubeletYAML(text []byte) map[string]any {
	var config map[string]any
	_ = yaml.Unmarshal(text, &config)
	return config
}

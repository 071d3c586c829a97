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

// checkGates returns the error with which a kubelet ends that lacks a gate of its flags (cmd/kubelet/app/server.go,
// component-base/featuregate/feature_gate.go).
func (c component) checkGates() error {
	var names []string
	for pair := range strings.SplitSeq(c.flag("--feature-gates"), ",") {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	if gone := c.firstGone(names); gone != "" {
		return fmt.Errorf("failed to set feature gates from initial flags-based config: unrecognized feature gate: %s", gone)
	}
	return nil
}

// checkConfiguredGates returns the error with which a kubelet ends that lacks a gate of its configuration: it panics
// while it sets defaults, before it compares the gates as those of its flags. Seen with the real kubelet 1.36.3 under
// Wine (pkg/kubelet/apis/config/v1beta1/defaults.go, the same in v1.35.4).
func (c component) checkConfiguredGates(text []byte) error {
	var config struct {
		FeatureGates map[string]any `yaml:"featureGates"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return err
	}
	if gone := c.firstGone(sortedKeys(config.FeatureGates)); gone != "" {
		return &panicError{"failed to merge global and in-flight KubeletConfiguration while setting defaults, error: " +
			"unrecognized feature gate: " + gone}
	}
	return nil
}

// firstGone returns the first of the gates that the kubelet lacks; "": none.
func (c component) firstGone(gates []string) string {
	_, minor := versionNumbers(c.version)
	slices.Sort(gates)
	for _, name := range gates {
		if gone, ok := goneGates()[name]; ok && c.version != unknownVersion && minor >= gone {
			return name
		}
	}
	return ""
}

// panicError ends a program with a panic.
type panicError struct{ message string }

func (e *panicError) Error() string { return "panic: " + e.message }

// trace returns what the program prints, in Go's form: the message, and the stack of its goroutine.
func (e *panicError) trace(version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "panic: %s\n\ngoroutine 1 [running]:\n", e.message)
	for _, frame := range []struct{ module, function, file string }{
		{"kubernetes", "pkg/kubelet/apis/config/v1beta1.SetDefaults_KubeletConfiguration",
			"pkg/kubelet/apis/config/v1beta1/defaults.go:72"},
		{"kubernetes", "pkg/kubelet/apis/config/v1beta1.SetObjectDefaults_KubeletConfiguration",
			"pkg/kubelet/apis/config/v1beta1/zz_generated.defaults.go:41"},
		{"kubernetes", "pkg/kubelet/apis/config/v1beta1.addDefaultingFuncs.RegisterDefaults.func1",
			"pkg/kubelet/apis/config/v1beta1/zz_generated.defaults.go:35"},
		{"apimachinery", "pkg/runtime.(*Scheme).Default", "pkg/runtime/scheme.go:357"},
		{"apimachinery", "pkg/runtime/serializer/versioning.(*codec).Decode",
			"pkg/runtime/serializer/versioning/versioning.go:187"},
		{"kubernetes", "pkg/kubelet/kubeletconfig/util/codec.DecodeKubeletConfiguration",
			"pkg/kubelet/kubeletconfig/util/codec/codec.go:75"},
		{"kubernetes", "pkg/kubelet/kubeletconfig/configfiles.(*fsLoader).Load",
			"pkg/kubelet/kubeletconfig/configfiles/configfiles.go:76"},
		{"kubernetes", "cmd/kubelet/app.loadConfigFile", "cmd/kubelet/app/server.go:464"},
		{"kubernetes", "cmd/kubelet/app.NewKubeletCommand.func1", "cmd/kubelet/app/server.go:218"},
		{"component-base", "cli.run", "cli/run.go:146"},
		{"component-base", "cli.Run", "cli/run.go:44"},
		{"kubernetes", "cmd/kubelet.main", "cmd/kubelet/kubelet.go:37"},
	} {
		fmt.Fprintf(&b, "k8s.io/%s/%s(0x2bf9924c4308)\n\tk8s.io/%[1]s@%[3]s/%[4]s +0x13e5\n", frame.module, frame.function,
			version, frame.file)
	}
	return b.String()
}

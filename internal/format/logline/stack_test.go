package logline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// The log of kubelet 1.36.3 whose configuration has a gate that it lacks, as it was seen under Wine, and shortened.
const crashed = `I1130 12:03:13.233381    2032 server.go:1] "Starting"
panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: unrecognized feature gate: MemoryManager

goroutine 1 [running]:
k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1.SetDefaults_KubeletConfiguration(0x2bf9924c4308)
	k8s.io/kubernetes@v1.36.3/pkg/kubelet/apis/config/v1beta1/defaults.go:72 +0x13e5
k8s.io/apimachinery/pkg/runtime.(*Scheme).Default(0x144dca280?, {0x142e50750, 0x2bf9924c4308})
	k8s.io/apimachinery@v0.36.3/pkg/runtime/scheme.go:357 +0x90
github.com/spf13/cobra.(*Command).Execute(...)
	github.com/spf13/cobra@v1.10.2/command.go:1071
main.main()
	k8s.io/kubernetes@v1.36.3/cmd/kubelet/kubelet.go:37 +0x2a
I1130 12:03:14.000000    2033 server.go:1] "Starting"`

func TestWithoutStacks(t *testing.T) {
	want := []string{
		`I1130 12:03:13.233381    2032 server.go:1] "Starting"`,
		"panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: " +
			"unrecognized feature gate: MemoryManager",
		"",
		`I1130 12:03:14.000000    2033 server.go:1] "Starting"`,
	}
	if diff := cmp.Diff(want, logline.WithoutStacks(strings.Split(crashed, "\n"))); diff != "" {
		t.Error(diff)
	}
	plain := []string{"a (b)", "\tindented", "goroutine 1 is mentioned", "x()"}
	if diff := cmp.Diff(plain, logline.WithoutStacks(plain)); diff != "" {
		t.Error(diff)
	}
}

package kubeletconfig_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
)

func TestLookup(t *testing.T) {
	for _, test := range []struct {
		path, text string
		want       any
		declared   string
		names      int
	}{
		{"maxPods", "40", 40, "maxPods", 1},
		{"clusterDomain", "40", "40", "clusterDomain", 1},
		{"streamingConnectionIdleTimeout", "4h", "4h", "streamingConnectionIdleTimeout", 1},
		{"evictionHard.memory.available", "500Mi", "500Mi", "evictionHard", 2},
		{"evictionHard", "{memory.available: 1Gi}", map[string]any{"memory.available": "1Gi"}, "evictionHard", 1},
		{"clusterDNS", "[10.96.0.10]", []any{"10.96.0.10"}, "clusterDNS", 1},
		{"authentication.anonymous.enabled", "false", false, "authentication.anonymous.enabled", 3},
		{"logging.verbosity", "4", 4, "logging.verbosity", 2},
	} {
		f, err := kubeletconfig.Lookup(kubeletconfig.Kubelet(), test.path)
		if err != nil || f.Declared != test.declared || len(f.Path) != test.names {
			t.Errorf("%s: %+v, %v", test.path, f, err)
			continue
		}
		got, err := f.Parse(test.text)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", test.path, err, diff)
		}
	}
}

func TestLookupRefuses(t *testing.T) {
	for _, path := range []string{"maxpods", "authentication.anonymouss.enabled", "maxPods.x", "kind", "apiVersion", "", "maxPods.", "evictionHard.",
		"authentication..anonymous", "."} {
		_, err := kubeletconfig.Lookup(kubeletconfig.Kubelet(), path)
		var unknown *kubeletconfig.UnknownFieldError
		if !errors.As(err, &unknown) || len(unknown.Known) == 0 || slices.Contains(unknown.Known, "kind") {
			t.Errorf("%q: %v", path, err)
		}
	}
	for path, text := range map[string]string{"maxPods": "many", "clusterDNS": "10.96.0.10", "readOnlyPort": "[1]",
		"failSwapOn": "", "nodeStatusUpdateFrequency": "10", "streamingConnectionIdleTimeout": "",
		"authentication.webhook.cacheTTL": "soon", "imageGCHighThresholdPercent": "1.5", "evictionHard": "{a: [", "shutdownGracePeriodByPodPriority": "{a: 1}"} {
		f, err := kubeletconfig.Lookup(kubeletconfig.Kubelet(), path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Parse(text)
		var wrong *kubeletconfig.ValueError
		if !errors.As(err, &wrong) || wrong.Path != path || wrong.Remedy == "" {
			t.Errorf("%s=%s: %v", path, text, err)
		}
	}
}

package up

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/config"
)

// An address of a node in a range of the cluster is found before anything is made.
func TestAddressesInRangesOfTheCluster(t *testing.T) {
	const node = "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-1}\n" +
		"spec:\n  credentials: {username: a, hostname: '<host>'}\n" +
		"  kubernetes: {version: v1.36.3, containerd: {version: 1.7.12}, join: {\n" +
		"    nodeIP: <ip>, controlPlaneEndpoint: '<end>', controlPlaneAlias: {name: api, ip: <alias>}}}\n"
	for name, c := range map[string]struct {
		host, ip, endpoint, alias string
		fields                    []string
	}{
		"apart": {"192.168.122.5:22", "192.168.122.5", "192.168.122.1:6443", "192.168.122.1", nil},
		"names": {"win-1.example", "192.168.122.5", "api.example:6443", "192.168.122.1", nil},
		"pods": {"10.244.3.4:22", "10.244.3.4", "api.example", "192.168.122.1",
			[]string{"spec.credentials.hostname", "spec.kubernetes.join.nodeIP"}},
		"services": {"win-1.example", "192.168.122.5", "10.96.0.1:443", "10.96.0.1",
			[]string{"spec.kubernetes.join.controlPlaneEndpoint", "spec.kubernetes.join.controlPlaneAlias.ip"}},
	} {
		text := strings.NewReplacer("<host>", c.host, "<ip>", c.ip, "<end>", c.endpoint, "<alias>", c.alias).Replace(node)
		doc := clusterOf(t, "")
		documents, err := config.Load([]string{config.Stdin}, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if problems := addressProblems(doc, documents); len(problems) > 0 {
			_, err = Up(t.Context(), doc, documents, Options{}) // it has nothing to make anything with
		}
		var fields []string
		if invalid := new(config.Error); errors.As(err, &invalid) {
			for _, problem := range invalid.Problems {
				fields = append(fields, problem.Field)
			}
		}
		if diff := cmp.Diff(c.fields, fields); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

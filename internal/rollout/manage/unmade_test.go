package manage_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout/manage"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// refusedSet is a DaemonSet whose pods the cluster refuses, and the events of its controller.
const refusedSet = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: swdt-node, namespace: swdt-fleet}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: node, image: x}]}}}
status: {desiredNumberScheduled: 3, currentNumberScheduled: 0}
---
apiVersion: v1
kind: Event
metadata: {name: a, namespace: swdt-fleet}
involvedObject: {kind: DaemonSet, name: swdt-node, namespace: swdt-fleet}
reason: FailedCreate
message: "Error creating: insufficient quota to match these scopes"
lastTimestamp: "2026-11-30T08:00:00Z"
---
apiVersion: v1
kind: Event
metadata: {name: b, namespace: swdt-fleet}
involvedObject: {kind: DaemonSet, name: swdt-node, namespace: swdt-fleet}
reason: FailedCreate
message: "Error creating: an older reason"
lastTimestamp: "2026-11-30T07:00:00Z"
`

// A status names a DaemonSet whose pods the cluster does not create, in the API server's words.
func TestStatusNamesADaemonSetWithoutPods(t *testing.T) {
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, r := range []apiserver.Resource{{Name: "noderollouts", Kind: "NodeRollout"}, {Name: "nodestates", Kind: "NodeState"}} {
		r.Group, r.Version, r.Status = fleetv1.GroupVersion().Group, fleetv1.GroupVersion().Version, true
		server.AddResource(r)
	}
	file := filepath.Join(t.TempDir(), "admin.conf")
	if err := server.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	for _, planted := range []bool{false, true} {
		if planted {
			if err := server.Plant(refusedSet); err != nil {
				t.Fatal(err)
			}
		}
		report, err := manage.Look(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		want := "DaemonSet swdt-fleet/swdt-node has pods on 0 of 3 nodes: Error creating: insufficient quota to match these scopes"
		if got := strings.Join(report.Unmade, "; "); slices.Contains(report.Unmade, want) != planted || !planted && got != "" {
			t.Errorf("planted %t: %q", planted, got)
		}
	}
}

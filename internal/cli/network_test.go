package cli_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// calicoOfOthers is a Calico without the settings that Windows needs.
const calicoOfOthers = `apiVersion: v1
kind: Namespace
metadata: {name: tigera-operator}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tigera-operator, namespace: tigera-operator}
spec:
  selector: {matchLabels: {name: tigera-operator}}
  template:
    metadata: {labels: {name: tigera-operator}}
    spec: {containers: [{name: operator, image: "quay.io/tigera/operator:v1.30.4"}]}
---
apiVersion: operator.tigera.io/v1
kind: Installation
metadata: {name: default}
spec: {calicoNetwork: {bgp: Enabled}}
`

// A status joins the cluster's settings with HNS of the nodes of the node files.
func TestNetworkStatusOnNodes(t *testing.T) {
	w := newWorkplace(t)
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, r := range apiserver.Calico() {
		server.AddResource(r)
	}
	if err := server.Plant(calicoOfOthers); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := server.Kubeconfig("")
	if err != nil {
		t.Fatal(err)
	}
	w.write("admin.conf", kubeconfig)
	var stderr lines
	code, stdout := w.swdt(t.Context(), &stderr, "network", "status", "--on-nodes", "-o", "json",
		"--kubeconfig", filepath.Join(w.folder, "admin.conf"))
	if code != 5 {
		t.Fatalf("exit code %d, want 5: %s", code, stderr.String())
	}
	var status podnetwork.Status
	if err := json.Unmarshal([]byte(stdout), &status); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	t.Logf("%+v", status)
	switch {
	case status.Installed != "others":
		t.Errorf("installed by %s", status.Installed)
	case status.Image != "quay.io/tigera/operator:v1.30.4":
		t.Errorf("the image is %s", status.Image)
	case len(status.Nodes) != 1:
		t.Errorf("nodes %+v", status.Nodes)
	}
}

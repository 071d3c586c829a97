package kindcluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// Config returns the configuration with which kind makes the cluster. In it, kind's default pod
// network is disabled, since that network does not support Windows.
func Config(c v1alpha1.Cluster) (*v1alpha4.Cluster, error) {
	wanted := c.Spec.ControlPlane.Kind
	config := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:     c.Metadata.Name,
		Networking: v1alpha4.Networking{
			APIServerAddress: wanted.APIServerAddress, APIServerPort: int32(wanted.APIServerPort),
			PodSubnet: c.Spec.Network.PodSubnet, ServiceSubnet: c.Spec.Network.ServiceSubnet,
			DisableDefaultCNI: true,
		},
		Nodes: []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: wanted.Image}},
	}
	for range wanted.Workers {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: wanted.Image})
	}
	patch, err := certificatePatch(wanted.APIServerNames)
	if err != nil {
		return nil, err
	}
	config.KubeadmConfigPatchesJSON6902 = patch
	v1alpha4.SetDefaultsCluster(config)
	return config, nil
}

// certificatePatch returns patches that add names to the API server's certificate. The names that
// kind itself puts into the certificate stay.
func certificatePatch(names []string) ([]v1alpha4.PatchJSON6902, error) {
	if len(names) == 0 {
		return nil, nil
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	var operations []operation
	for _, name := range names {
		operations = append(operations, operation{Op: "add", Path: "/apiServer/certSANs/-", Value: name})
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("write the names of the API server: %w", err)
	}
	var patches []v1alpha4.PatchJSON6902
	for _, version := range []string{"v1beta3", "v1beta4"} { // kind applies the patch for the version that it uses
		patches = append(patches, v1alpha4.PatchJSON6902{
			Group: "kubeadm.k8s.io", Version: version, Kind: "ClusterConfiguration", Patch: string(text),
		})
	}
	return patches, nil
}

// startLimit is the time that kubeadm gives the API server, the controller manager and the scheduler to
// start. kubeadm's default of 4 minutes is too short on a machine that is busy with other work.
const startLimit = 10 * time.Minute

// withPatience returns a configuration with which kubeadm waits for the control plane up to startLimit.
// Records do not have this limit, since it is no property of the cluster that is made.
func withPatience(wanted *v1alpha4.Cluster) *v1alpha4.Cluster {
	patient := *wanted
	patient.KubeadmConfigPatchesJSON6902 = slices.Concat(wanted.KubeadmConfigPatchesJSON6902, []v1alpha4.PatchJSON6902{
		{Group: "kubeadm.k8s.io", Version: "v1beta3", Kind: "ClusterConfiguration",
			Patch: fmt.Sprintf(`[{"op":"add","path":"/apiServer/timeoutForControlPlane","value":%q}]`, startLimit)},
		{Group: "kubeadm.k8s.io", Version: "v1beta4", Kind: "InitConfiguration",
			Patch: fmt.Sprintf(`[{"op":"add","path":"/timeouts","value":{"controlPlaneComponentHealthCheck":%q}}]`,
				startLimit)},
	})
	return &patient
}

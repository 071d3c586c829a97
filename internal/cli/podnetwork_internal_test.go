package cli

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

// The network of the pods is found in HNS with what kube-proxy needs: Calico has an endpoint for the node itself, and
// flannel (pkg/backend/vxlan/device_windows.go) only the node's subnet.
func TestFindPodNetwork(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{Preset: simulated.Minimal})
	put := func(file, text string) { n.Machine.WriteFile(simulated.HNSFolder+`\`+file+".json", []byte(text)) }
	put(`networks\1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44`, `{"ID":"1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44","Name":"flannel.4096",
"Type":"Overlay","Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.244.1.0/24",
"Policies":[{"Type":"VSID","Settings":{"IsolationId":4096}}],"Routes":[{"NextHop":"10.244.1.1","DestinationPrefix":"0.0.0.0/0"}]}]}],
"SchemaVersion":{"Major":2,"Minor":0}}`)
	put(`networks\2B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44`, `{"ID":"2B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44","Name":"Calico",
"Type":"Overlay","Ipams":[{"Subnets":[{"IpAddressPrefix":"192.168.71.64/26"}]}],"SchemaVersion":{"Major":2,"Minor":0}}`)
	put(`endpoints\3B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44`, `{"ID":"3B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44","Name":"Calico_ep",
"HostComputeNetwork":"2B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44","IpConfigurations":[{"IpAddress":"192.168.71.66","PrefixLength":26}],
"SchemaVersion":{"Major":2,"Minor":0}}`)
	for name, want := range map[string]join.PodNetwork{
		"flannel.4096": {Type: "Overlay", Subnet: "10.244.1.0/24"},
		"Calico":       {Type: "Overlay", Subnet: "192.168.71.64/26", SourceVIP: "192.168.71.66"},
	} {
		if got, found, err := findPodNetwork(t.Context(), n.Node, name); err != nil || !found || got != want {
			t.Errorf("%s: %+v, %v, %v; want %+v", name, got, found, err, want)
		}
	}
	if _, found, err := findPodNetwork(t.Context(), n.Node, "antrea-hnsnetwork"); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

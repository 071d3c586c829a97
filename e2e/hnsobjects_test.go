//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hnsObjects are the objects of the imitation of HNS by their IDs, as the files have them.
type hnsObjects struct {
	networks  map[string]map[string]any
	endpoints map[string]hnsEndpoint
	balancers map[string]hnsBalancer
}

// hnsEndpoint has all fields of an endpoint. Clients leave out fields that are zero, and write empty objects for Dns and
// Health (hnslib v0.1.2, hcn/hcnendpoint.go).
type hnsEndpoint struct {
	ID, Name, HostComputeNetwork, MacAddress string
	Flags                                    int
	IPConfigurations                         []hnsAddress `json:"IpConfigurations"`
	Policies                                 []hnsPolicy
	Routes                                   []struct{ NextHop, DestinationPrefix string }
	DNS                                      struct{} `json:"Dns"`
	Health                                   struct{ Extra struct{} }
	SchemaVersion                            struct{ Major, Minor int }
}

type hnsAddress struct{ IPAddress string }

// hnsPolicy is a policy of an endpoint that kube-proxy makes.
type hnsPolicy struct {
	Type     string
	Settings hnsProvider
}

type hnsProvider struct{ ProviderAddress string }

func (e hnsEndpoint) address() string {
	if len(e.IPConfigurations) != 1 {
		return ""
	}
	return e.IPConfigurations[0].IPAddress
}

// hnsBalancer has all fields of a load balancer (hnslib v0.1.2, hcn/hcnloadbalancer.go).
type hnsBalancer struct {
	ID                                 string
	HostComputeEndpoints, FrontendVIPs []string
	SourceVIP                          string
	PortMappings                       []hnsPort
	SchemaVersion                      struct{ Major, Minor int }
	Flags                              int
}

type hnsPort struct{ Protocol, InternalPort, ExternalPort, DistributionType, Flags int }

// readHNS reads the objects in a folder of the imitation of HNS. A field that these types lack is an error. The error is
// fs.ErrNotExist if an object is deleted meanwhile, or if a load balancer names an endpoint that does not exist.
func readHNS(folder string) (o hnsObjects, err error) {
	if o.balancers, err = readKind[hnsBalancer](folder, "loadbalancers"); err != nil {
		return o, err
	}
	if o.endpoints, err = readKind[hnsEndpoint](folder, "endpoints"); err != nil {
		return o, err
	}
	for _, b := range o.balancers {
		for _, id := range b.HostComputeEndpoints {
			if _, there := o.endpoints[id]; !there {
				return o, fmt.Errorf("load balancer %s: endpoint %s: %w", b.ID, id, os.ErrNotExist)
			}
		}
	}
	o.networks, err = readKind[map[string]any](folder, "networks")
	return o, err
}

func readKind[T any](folder, kind string) (map[string]T, error) {
	files, err := filepath.Glob(filepath.Join(folder, kind, "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]T{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var object T
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&object); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", file, err, text)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = object
	}
	return all, nil
}

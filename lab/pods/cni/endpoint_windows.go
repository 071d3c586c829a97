package main

import (
	"fmt"
	"os"

	"github.com/swdt-dev/swdt/lab/pods/hcn"
)

func (c config) endpointName() string { return os.Getenv("CNI_CONTAINERID") + "_" + c.HNSNetwork }

// makeEndpoint makes the pod's endpoint.
func (c config) makeEndpoint() error {
	if c.HNSNetwork == "" {
		return nil
	}
	network, err := hcn.Named(hcn.Network, c.HNSNetwork)
	if err != nil {
		return fmt.Errorf("look for the HNS network %s: %w", c.HNSNetwork, err)
	}
	if network == "" {
		return fmt.Errorf("HNS has no network %s", c.HNSNetwork)
	}
	ip := c.podAddress()
	bytes := ip.As4()
	err = hcn.CreateEndpoint(network, hcn.Object{
		"Name": c.endpointName(), "HostComputeNetwork": network, "SchemaVersion": hcn.Object{"Major": 2, "Minor": 0},
		"MacAddress":       fmt.Sprintf("0E-2A-%02x-%02x-%02x-%02x", bytes[0], bytes[1], bytes[2], bytes[3]),
		"IpConfigurations": []hcn.Object{{"IpAddress": ip.String()}},
		"Routes":           []hcn.Object{{"NextHop": c.prefix() + ".0.1", "DestinationPrefix": "0.0.0.0/0"}},
	})
	if err != nil {
		return fmt.Errorf("make the pod's HNS endpoint: %w", err)
	}
	return nil
}

// removeEndpoint removes the pod's endpoint, if there is one.
func (c config) removeEndpoint() error {
	if c.HNSNetwork == "" {
		return nil
	}
	id, err := hcn.Named(hcn.Endpoint, c.endpointName())
	if err != nil || id == "" {
		return err
	}
	return hcn.Delete(hcn.Endpoint, id)
}

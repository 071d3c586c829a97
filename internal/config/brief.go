package config

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// briefNode is a node with the fields that a short node file has.
type briefNode struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   v1alpha1.Metadata `yaml:"metadata"`
	Spec       struct {
		Credentials v1alpha1.Credentials `yaml:"credentials"`
		Kubernetes  struct {
			Provisioners []briefProvisioner `yaml:"provisioners,omitempty"`
		} `yaml:"kubernetes,omitempty"`
	} `yaml:"spec"`
}

type briefProvisioner struct {
	Name        string `yaml:"name"`
	Service     string `yaml:"service,omitempty"`
	SourceURL   string `yaml:"sourceURL"`
	Destination string `yaml:"destination"`
}

// Brief returns a node file with how the nodes are reached and where their components are, without what is the default
// and without other settings.
func Brief(documents []Document) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, d := range documents {
		n := briefNode{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
			Metadata: v1alpha1.Metadata{Name: d.Node.Metadata.Name}}
		n.Spec.Credentials = d.Node.Spec.Credentials
		for _, p := range d.Node.Spec.Kubernetes.Provisioners {
			n.Spec.Kubernetes.Provisioners = append(n.Spec.Kubernetes.Provisioners,
				briefProvisioner{p.Name, p.Service, p.SourceURL, p.Destination})
		}
		if err := encoder.Encode(n); err != nil {
			return nil, fmt.Errorf("write node %s: %w", d.Node.Metadata.Name, err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write the node file: %w", err)
	}
	return out.Bytes(), nil
}

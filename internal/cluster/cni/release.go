package cni

import (
	"fmt"
	"slices"
	"strings"
)

// Network is a kind of pod network.
type Network string

// The pod networks that swdt installs.
const (
	Calico  Network = "calico"
	Flannel Network = "flannel"
)

// HNSName returns the name of the network in the Host Network Service of a Windows node.
func (n Network) HNSName() string {
	if n == Flannel {
		return FlannelNetwork
	}
	return "Calico"
}

// Networks returns the pod networks that swdt installs; the first is the default.
func Networks() []Network { return []Network{Calico, Flannel} }

// NetworkNamed returns the network with the given name; an empty name means the default.
func NetworkNamed(name string) (Network, error) {
	all := Networks()
	if name == "" {
		return all[0], nil
	}
	if n := Network(strings.ToLower(name)); slices.Contains(all, n) {
		return n, nil
	}
	var names []string
	for _, n := range all {
		names = append(names, string(n))
	}
	return "", fmt.Errorf("swdt installs no pod network %q: use %s", name, strings.Join(names, " or "))
}

// Release is a published manifest of a pod network.
type Release struct {
	Network Network
	Version string // with v
	URL     string
	SHA256  string // the hash of the manifest; empty if swdt does not know it
}

// releases has the manifests whose hashes are known. The hashes are of the files in the Go
// modules github.com/projectcalico/calico (commit a0db560f0520, whose manifests name v3.28.5) and
// github.com/flannel-io/flannel (tag v0.28.10).
func releases() []Release {
	return []Release{
		{Calico, "v3.28.5", calicoURL("v3.28.5"), "69159fe3450ff0cf8b6db29e2b011a287ed5d8de341e81812c98aae69d3e51b5"},
		{Flannel, "v0.28.10", flannelURL("v0.28.10"), "944a3c1f925f117727a1b7272a323c80965da642498397ec7e6ea9bef0f9e6c5"},
	}
}

// ReleaseOf returns the manifest of a version; an empty version means the default. SHA256 is empty
// if swdt does not know the version's hash.
func ReleaseOf(n Network, version string) Release {
	if version != "" {
		version = "v" + strings.TrimPrefix(version, "v")
	}
	for _, r := range releases() {
		if r.Network == n && (version == "" || r.Version == version) {
			return r
		}
	}
	url := calicoURL
	if n == Flannel {
		url = flannelURL
	}
	return Release{Network: n, Version: version, URL: url(version)}
}

func calicoURL(version string) string {
	return "https://raw.githubusercontent.com/projectcalico/calico/" + version + "/manifests/tigera-operator.yaml"
}

func flannelURL(version string) string {
	return "https://raw.githubusercontent.com/flannel-io/flannel/" + version + "/Documentation/kube-flannel.yml"
}

package cni

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Network is a kind of pod network.
type Network string

// The pod networks that swdt installs.
const (
	Calico  Network = "calico"
	Flannel Network = "flannel"
	Antrea  Network = "antrea"
)

// HNSName returns the name of the network in the Host Network Service of a Windows node.
func (n Network) HNSName() string {
	switch n {
	case Flannel:
		return FlannelNetwork
	case Antrea:
		return AntreaNetwork
	}
	return "Calico"
}

// Networks returns the pod networks that swdt installs; the first is the default.
func Networks() []Network { return []Network{Calico, Flannel, Antrea} }

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
	return "", fmt.Errorf("swdt installs no pod network %q: use %s", name, ui.Alternatives(names))
}

// Release is the published manifest of a version of a pod network.
type Release struct {
	Network Network
	Version string // with v
	URL     string
	SHA256  string // the hash of the manifest; empty if swdt does not know it
	// WindowsURL is the URL of a second manifest, for Windows nodes; empty if the first has everything.
	WindowsURL    string
	WindowsSHA256 string // the hash of the second manifest; empty if swdt does not know it
}

// releases has the default version of each network. The hashes are of the files in the Go
// modules github.com/projectcalico/calico (commit a0db560f0520, whose manifests name v3.28.5) and
// github.com/flannel-io/flannel (tag v0.28.10). Antrea's manifests are made for each release and are in no
// module, so the user must verify them.
func releases() []Release {
	return []Release{
		{Network: Calico, Version: "v3.28.5", URL: calicoURL("v3.28.5"),
			SHA256: "69159fe3450ff0cf8b6db29e2b011a287ed5d8de341e81812c98aae69d3e51b5"},
		{Network: Flannel, Version: "v0.28.10", URL: flannelURL("v0.28.10"),
			SHA256: "944a3c1f925f117727a1b7272a323c80965da642498397ec7e6ea9bef0f9e6c5"},
		antreaRelease("v2.7.0"),
	}
}

// ReleaseOf returns the manifests of a version; an empty version means the default. The hashes are empty
// if swdt does not know them.
func ReleaseOf(n Network, version string) Release {
	if version != "" {
		version = "v" + strings.TrimPrefix(version, "v")
	}
	for _, r := range releases() {
		if r.Network == n && (version == "" || r.Version == version) {
			return r
		}
	}
	switch n {
	case Flannel:
		return Release{Network: n, Version: version, URL: flannelURL(version)}
	case Antrea:
		return antreaRelease(version)
	}
	return Release{Network: n, Version: version, URL: calicoURL(version)}
}

// antreaRelease returns the manifests of a version of Antrea, whose hashes swdt does not know.
func antreaRelease(version string) Release {
	folder := "https://github.com/antrea-io/antrea/releases/download/" + version + "/"
	return Release{Network: Antrea, Version: version, URL: folder + "antrea.yml",
		WindowsURL: folder + "antrea-windows-with-ovs.yml"}
}

func calicoURL(version string) string {
	return "https://raw.githubusercontent.com/projectcalico/calico/" + version + "/manifests/tigera-operator.yaml"
}

func flannelURL(version string) string {
	return "https://raw.githubusercontent.com/flannel-io/flannel/" + version + "/Documentation/kube-flannel.yml"
}

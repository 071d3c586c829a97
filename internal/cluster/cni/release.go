package cni

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

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

// Release has the published manifests of a version of a pod network.
type Release struct {
	Network Network
	Version string // with v
	URL     string
	SHA256  string // the hash of the manifest; empty if swdt does not know it
	// CRDsURL is the URL of a second manifest with CustomResourceDefinitions, which Calico has since v3.30; empty
	// if the first has them.
	CRDsURL    string
	CRDsSHA256 string // the hash of that manifest; empty if swdt does not know it
	// WindowsURL is the URL of a second manifest, for Windows nodes; empty if the first has everything.
	WindowsURL    string
	WindowsSHA256 string // the hash of the second manifest; empty if swdt does not know it
	// Oldest and Newest are the minor versions of Kubernetes 1 that the project tests this release with; 0: swdt
	// does not know them.
	Oldest, Newest int
}

// calicoReleases has the versions of Calico whose hashes swdt knows, the newest first. The hashes are of the files
// manifests/tigera-operator.yaml and manifests/operator-crds.yaml in the tags of github.com/projectcalico/calico,
// seen on 29 November 2026. The versions of Kubernetes are those of Calico's page "System requirements" of each
// version, as quoted for 3.29 by https://github.com/orgs/projectcalico/discussions/11717, and for 3.31 and 3.32 by
// the notes of https://github.com/Rusty-Gopher/kupre/releases/tag/v0.5.0. Those of 3.28 and 3.30 were not seen.
func calicoReleases() []Release {
	return []Release{
		calicoRelease("v3.32.1", "f18e073794207d372606bc3ea6f8fd73972f86d6828f4ba666dfe0d4aa8ab07f",
			"192f8b2d934ef24b62e86b7e1a6e1762d1c8af26a916f78057bc13fa5ed60f71", 34, 36),
		calicoRelease("v3.31.7", "092c10b3d0cb73617aca51367ca59755348f4647e6d2e63fa4e5b81266203214",
			"380414d5756e9a1af29ddb1ad70cada07aa344ae7a2680ba7355248621f8adbf", 32, 35),
		calicoRelease("v3.30.7", "bcc9f89c1847ee5237c29c1b7e4a67c86296cb0139619093df6ca98ec14abf18",
			"53b2e2791915809db8016b72d4ceac9d1dd529d053984eb203c06b94c6639ee3", 0, 0),
		calicoRelease("v3.29.7", "a571ef21476c026618a7c7b092a3ab1744ec191e02492655d8c1468ac08f25f2", "", 29, 32),
		calicoRelease("v3.28.5", "69159fe3450ff0cf8b6db29e2b011a287ed5d8de341e81812c98aae69d3e51b5", "", 0, 0),
	}
}

// releases has the versions whose hashes swdt knows, and the default version of Antrea, the newest of each network
// first. flannel's hash is of the file in the Go module github.com/flannel-io/flannel (tag v0.28.10). Antrea's
// manifests are made for each release and are in no module, so the user must verify them.
func releases() []Release {
	return append(calicoReleases(),
		Release{Network: Flannel, Version: "v0.28.10", URL: flannelURL("v0.28.10"),
			SHA256: "944a3c1f925f117727a1b7272a323c80965da642498397ec7e6ea9bef0f9e6c5"},
		antreaRelease("v2.7.0"))
}

// DefaultRelease returns the version of a network that is installed if the user names none: the newest one that its
// project tests with the cluster's Kubernetes, such as v1.36.3. If there is none, it is the newest one for a later
// Kubernetes, and the oldest one for an earlier Kubernetes. An empty version means the newest.
func DefaultRelease(n Network, kubernetes string) Release {
	var all []Release
	for _, r := range releases() {
		if r.Network == n {
			all = append(all, r)
		}
	}
	server, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return all[0]
	}
	minor, earlier := int(server.Minor()), false
	for _, r := range all {
		if r.TestedWith(minor) {
			return r
		}
		earlier = earlier || minor < r.Oldest
	}
	if earlier {
		return all[len(all)-1]
	}
	return all[0]
}

// TestedWith reports whether the project tests the release with Kubernetes 1.minor, as far as swdt knows.
func (r Release) TestedWith(minor int) bool { return r.Oldest <= minor && minor <= r.Newest }

// ReleaseOf returns the manifests of a version; an empty version means the default for the cluster's Kubernetes. The
// hashes are empty if swdt does not know them.
func ReleaseOf(n Network, version, kubernetes string) Release {
	if version == "" {
		return DefaultRelease(n, kubernetes)
	}
	version = "v" + strings.TrimPrefix(version, "v")
	for _, r := range releases() {
		if r.Network == n && r.Version == version {
			return r
		}
	}
	switch n {
	case Flannel:
		return Release{Network: n, Version: version, URL: flannelURL(version)}
	case Antrea:
		return antreaRelease(version)
	}
	return calicoRelease(version, "", "", 0, 0)
}

// antreaRelease returns the manifests of a version of Antrea, whose hashes swdt does not know.
func antreaRelease(version string) Release {
	folder := "https://github.com/antrea-io/antrea/releases/download/" + version + "/"
	return Release{Network: Antrea, Version: version, URL: folder + "antrea.yml",
		WindowsURL: folder + "antrea-windows-with-ovs.yml"}
}

// firstCRDs is the first minor version of Calico 3 whose CustomResourceDefinitions are a manifest of their own.
const firstCRDs = 30

// calicoRelease returns the manifests of a version of Calico.
func calicoRelease(name, operator, crds string, oldest, newest int) Release {
	folder := "https://raw.githubusercontent.com/projectcalico/calico/" + name + "/manifests/"
	r := Release{Network: Calico, Version: name, URL: folder + "tigera-operator.yaml", SHA256: operator, Oldest: oldest,
		Newest: newest}
	if v, err := version.ParseGeneric(name); err != nil || v.Major() > 3 || v.Minor() >= firstCRDs {
		r.CRDsURL, r.CRDsSHA256 = folder+"operator-crds.yaml", crds
	}
	return r
}

func flannelURL(version string) string {
	return "https://raw.githubusercontent.com/flannel-io/flannel/" + version + "/Documentation/kube-flannel.yml"
}

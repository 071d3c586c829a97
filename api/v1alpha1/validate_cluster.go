package v1alpha1

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// imagePattern matches names of images, with tag or digest.
const imagePattern = `[a-z0-9][a-zA-Z0-9._:/@-]{0,400}`

// Limits of a cluster. They only catch mistakes.
const (
	maxKindWorkers    = 20
	maxAPIServerNames = 32
	maxKindImages     = 100
	maxMirrors        = 32 // the number of registries, and of endpoints of one registry
)

// ValidateCluster returns every problem of a cluster whose defaults are set
// (SetClusterDefaults). It does not check anything that needs your machine.
func ValidateCluster(c *Cluster) []Problem {
	var p problems
	if c.APIVersion != APIVersion {
		p.add("apiVersion", fmt.Sprintf("%q is not understood", c.APIVersion), "write "+APIVersion)
	}
	if c.Kind != ClusterKind {
		p.add("kind", fmt.Sprintf("%q is not understood", c.Kind), "write "+ClusterKind)
	}
	validateClusterMetadata(&p, c.Metadata)
	validateControlPlane(&p, "spec.controlPlane", c.Spec.ControlPlane)
	validateSubnets(&p, "spec.network", c.Spec.Network, c.Spec.ControlPlane.Existing != nil)
	validatePlugin(&p, "spec.network", c.Spec.Network)
	return p
}

// validateClusterMetadata checks the name, which becomes a part of container names and of
// host names.
func validateClusterMetadata(p *problems, m Metadata) {
	if p.required("metadata.name", m.Name, "name the cluster") && !matches(`[a-z0-9]([-a-z0-9.]{0,48}[a-z0-9])?`, m.Name) {
		p.add("metadata.name", fmt.Sprintf("%.60q is not the name of a cluster", m.Name),
			"use at most 50 lower-case letters, digits, and - . between them")
	}
	validateLabels(p, m.Labels)
}

// validateControlPlane checks that there is exactly one control plane.
func validateControlPlane(p *problems, field string, c ControlPlane) {
	switch {
	case c.Kind == nil && c.Existing == nil:
		p.add(field, "names no control plane",
			"write controlPlane: {kind: {}} for a new cluster, or {existing: {}} for that of your kubeconfig")
	case c.Kind != nil && c.Existing != nil:
		p.add(field+".existing", "is set beside kind", "keep kind for a new cluster, or existing for one that you have")
	}
	if c.Kind != nil {
		validateKind(p, field+".kind", *c.Kind)
	}
}

func validateKind(p *problems, field string, k KindControlPlane) {
	if k.Image != "" && !matches(imagePattern, k.Image) {
		p.add(field+".image", fmt.Sprintf("%.60q is not an image", k.Image), "write it as in `docker pull`")
	}
	if k.Workers < 0 || k.Workers > maxKindWorkers {
		p.add(field+".workers", fmt.Sprintf("%d is not a number of workers", k.Workers),
			fmt.Sprintf("write 0 to %d", maxKindWorkers))
	}
	if k.Runtime != "" {
		oneOf(p, field+".runtime", k.Runtime, "docker", "podman", "nerdctl")
	}
	if address, err := netip.ParseAddr(k.APIServerAddress); err != nil || address.Zone() != "" {
		p.add(field+".apiServerAddress", fmt.Sprintf("%.60q is not an IP address", k.APIServerAddress),
			"write an address of your machine")
	}
	if k.APIServerPort < 0 || k.APIServerPort > 65535 {
		p.add(field+".apiServerPort", fmt.Sprintf("%d is not a port", k.APIServerPort),
			"write a number from 1 to 65535, or leave it out")
	}
	if len(k.APIServerNames) > maxAPIServerNames {
		p.add(field+".apiServerNames", fmt.Sprintf("has %d names", len(k.APIServerNames)),
			fmt.Sprintf("keep at most %d", maxAPIServerNames))
	}
	names := newSeen(p)
	for i, name := range k.APIServerNames {
		item := at(field+".apiServerNames", i, "")
		if _, err := netip.ParseAddr(name); err != nil && !matches(`[a-z0-9*]([-a-z0-9.]{0,251}[a-z0-9])?`, name) {
			p.add(item, fmt.Sprintf("%.60q is neither a host name nor an IP address", name), "write one of these")
			continue
		}
		names.add(item, name)
	}
	validateKindImages(p, field+".images", k.Images)
	validateMirrors(p, field+".registryMirrors", k.RegistryMirrors)
}

func validateKindImages(p *problems, field string, images []string) {
	if len(images) > maxKindImages {
		p.add(field, fmt.Sprintf("has %d images", len(images)), fmt.Sprintf("keep at most %d", maxKindImages))
	}
	names := newSeen(p)
	for i, image := range images {
		item := at(field, i, "")
		if !matches(imagePattern, image) {
			p.add(item, fmt.Sprintf("%.60q is not an image", image), "write it as `docker images` prints it")
			continue
		}
		names.add(item, image)
	}
}

func validateMirrors(p *problems, field string, mirrors []RegistryMirror) {
	if len(mirrors) > maxMirrors {
		p.add(field, fmt.Sprintf("has %d registries", len(mirrors)), fmt.Sprintf("keep at most %d", maxMirrors))
	}
	registries := newSeen(p)
	for i, mirror := range mirrors {
		item := at(field, i, "registry")
		if mirror.Registry != "_default" && !matches(`[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(:[0-9]{1,5})?`, mirror.Registry) {
			p.add(item, fmt.Sprintf("%.60q is not the host of a registry", mirror.Registry),
				"write a host such as docker.io, or _default")
		} else {
			registries.add(item, mirror.Registry)
		}
		endpoints := at(field, i, "endpoints")
		if len(mirror.Endpoints) == 0 || len(mirror.Endpoints) > maxMirrors {
			p.add(endpoints, fmt.Sprintf("has %d URLs", len(mirror.Endpoints)), fmt.Sprintf("write 1 to %d", maxMirrors))
		}
		for j, endpoint := range mirror.Endpoints {
			validateMirror(p, at(endpoints, j, ""), endpoint)
		}
	}
}

// validateMirror checks the URL of a mirror. containerd on a Linux node uses the URL, so a loopback
// address would lead to the node's own container.
func validateMirror(p *problems, field, endpoint string) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		p.add(field, fmt.Sprintf("%.60q is not a URL of a mirror", endpoint), "write https://HOST")
	case u.User != nil:
		p.add(field, "has a user or a password, which would be readable on the nodes", "remove it: use a mirror without one")
	case u.RawQuery != "" || u.Fragment != "":
		p.add(field, "has a query or a fragment", "remove it")
	case isLoopback(u.Hostname()):
		p.add(field, "is the loopback address, which is that of the node's own container",
			"write an address of your machine that containers reach, such as that of Docker's bridge")
	}
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// validateSubnets checks that the ranges of the pods and of the Services are IPv4 networks, are
// large enough, and do not overlap. If optional is true, a range may be missing.
func validateSubnets(p *problems, field string, n ClusterNetwork, optional bool) {
	validate := func(name, text string, longest int) (netip.Prefix, bool) {
		if optional && text == "" {
			return netip.Prefix{}, false
		}
		return validateSubnet(p, field+"."+name, text, longest)
	}
	pods, podsValid := validate("podSubnet", n.PodSubnet, 24)
	services, servicesValid := validate("serviceSubnet", n.ServiceSubnet, 28)
	if podsValid && servicesValid && pods.Overlaps(services) {
		p.add(field+".serviceSubnet", fmt.Sprintf("overlaps podSubnet (%s)", pods), "choose another range for one of them")
	}
}

// validatePlugin checks the fields that select the pod network and its manifest.
func validatePlugin(p *problems, field string, n ClusterNetwork) {
	oneOf(p, field+".plugin", n.Plugin, CalicoPlugin, FlannelPlugin, AntreaPlugin, NoPlugin)
	if n.KubeProxy != "" {
		oneOf(p, field+".kubeProxy", n.KubeProxy, "service", "daemonset", "none")
		if n.Plugin == AntreaPlugin || n.Plugin == NoPlugin {
			p.add(field+".kubeProxy", "is set, although plugin is "+n.Plugin, "remove it: swdt installs kube-proxy with calico "+
				"and flannel")
		}
	}
	if n.Version != "" && n.Manifest != "" {
		p.add(field+".manifest", "is set beside version", "leave version out: the manifest has its own")
	}
	type value struct{ name, text string }
	for _, hash := range []value{
		{"sha256", n.SHA256}, {"crdSHA256", n.CRDSHA256}, {"windowsSHA256", n.WindowsSHA256},
	} {
		if hash.text != "" && !matches(`[0-9a-fA-F]{64}`, hash.text) {
			p.add(field+"."+hash.name, "is not a SHA-256", "write 64 hexadecimal digits, as sha256sum prints them")
		}
	}
	if n.WindowsManifest != "" && n.Manifest == "" {
		p.add(field+".windowsManifest", "is set without manifest", "name the manifest for Linux nodes in manifest, too")
	}
	switch {
	case n.CRDManifest != "" && n.Manifest == "":
		p.add(field+".crdManifest", "is set without manifest", "name tigera-operator.yaml in manifest, too")
	case n.CRDSHA256 != "" && n.CRDManifest == "" && n.Version == "":
		p.add(field+".crdSHA256", "is set without crdManifest", "name the manifest in crdManifest, or a version")
	}
	var wrong []value
	remedy := "remove it: only antrea has a manifest for Windows, and only calico one with CustomResourceDefinitions"
	if n.Plugin == NoPlugin {
		wrong, remedy = []value{{"version", n.Version}, {"manifest", n.Manifest}, {"sha256", n.SHA256}},
			"remove it, or choose a plugin"
	}
	if n.Plugin != AntreaPlugin {
		wrong = append(wrong, value{"windowsManifest", n.WindowsManifest}, value{"windowsSHA256", n.WindowsSHA256})
	}
	if n.Plugin != CalicoPlugin {
		wrong = append(wrong, value{"crdManifest", n.CRDManifest}, value{"crdSHA256", n.CRDSHA256})
	}
	for _, set := range wrong {
		if set.text != "" {
			p.add(field+"."+set.name, "is set, although plugin is "+n.Plugin, remedy)
		}
	}
}

// validateSubnet parses a range, and reports whether it is valid. longest is the prefix length
// of the smallest range that is large enough.
func validateSubnet(p *problems, field, text string, longest int) (netip.Prefix, bool) {
	subnet, err := netip.ParsePrefix(text)
	switch {
	case err != nil || !subnet.Addr().Is4():
		p.add(field, fmt.Sprintf("%.60q is not an IPv4 range", text), "write one such as "+DefaultPodSubnet)
	case subnet != subnet.Masked():
		p.add(field, fmt.Sprintf("%s begins within a range", subnet), "write "+subnet.Masked().String())
	case subnet.Bits() > longest:
		p.add(field, fmt.Sprintf("%s is too small", subnet), fmt.Sprintf("write a range of /%d or larger", longest))
	default:
		return subnet, true
	}
	return subnet, false
}

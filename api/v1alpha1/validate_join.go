package v1alpha1

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const releaseForm = "write a release such as 1.36.3"

// validateKubernetes checks the fields that `swdt join` uses.
func validateKubernetes(p *problems, field string, k Kubernetes) {
	validateRelease(p, field+".version", k.Version)
	validateContainerd(p, field+".containerd", k.Containerd)
	validateKubelet(p, field+".kubelet", k.Kubelet)
	validateJoin(p, field+".join", k.Join)
	if k.Proxy != nil {
		validateProxy(p, field+".proxy", *k.Proxy)
	}
	validateAuthorities(p, field+".certificateAuthorities", k.CertificateAuthorities)
}

func validateAuthorities(p *problems, field string, authorities []string) {
	const form = "write a certificate in PEM, or the path of a file with it"
	seen := newSeen(p)
	for i, authority := range authorities {
		entry, text := at(field, i, ""), strings.TrimSpace(authority)
		switch {
		case text == "":
			p.add(entry, "is empty", form)
		case strings.Contains(text, "PRIVATE KEY"):
			p.add(entry, "has a private key", "write the certificate alone; private keys stay where they are")
		case !strings.Contains(text, "-----BEGIN") && hasControl(text):
			p.add(entry, "is neither a certificate nor a path", form)
		default:
			seen.add(entry, text)
		}
	}
}

// validateProxy accepts the forms of golang.org/x/net/http/httpproxy, with which containerd and kubelet read the
// variables: a URL, or host:port.
func validateProxy(p *problems, field string, proxy Proxy) {
	for _, address := range []struct{ name, value string }{{"http", proxy.HTTP}, {"https", proxy.HTTPS}} {
		if address.value == "" {
			continue
		}
		text := address.value
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		parsed, err := url.Parse(text)
		if err != nil || parsed.Host == "" || hasControl(text) ||
			!slices.Contains([]string{"http", "https", "socks5", "socks5h"}, parsed.Scheme) {
			p.add(field+"."+address.name, "is not the address of a proxy", "write it as http://proxy.example.com:3128")
		}
	}
	for i, entry := range proxy.NoProxy {
		if entry == "" || strings.ContainsAny(entry, ", ;=") || hasControl(entry) {
			p.add(at(field+".noProxy", i, ""), fmt.Sprintf("%.60q is not a host, a domain or a range", entry),
				"write one of them, such as .example.com")
		}
	}
}

func validateRelease(p *problems, field, version string) {
	if version != "" && !matches(`v?[0-9]+\.[0-9]+\.[0-9]+([-+][A-Za-z0-9.+-]+)?`, version) {
		p.add(field, fmt.Sprintf("%.60q is not a release", version), releaseForm)
	}
}

func validateContainerd(p *problems, field string, c Containerd) {
	validateRelease(p, field+".version", c.Version)
	validateRelease(p, field+".crictlVersion", c.CrictlVersion)
	validateOptionalSource(p, field+".source", c.Source)
	if c.SHA256 != "" && !matches(`[0-9a-f]{64}`, c.SHA256) {
		p.add(field+".sha256", "is not a SHA-256 hash", "write 64 hexadecimal digits, as sha256sum prints them")
	}
	validateOptionalPath(p, field+".cni.binDirectory", c.CNI.BinDirectory)
	validateOptionalPath(p, field+".cni.configDirectory", c.CNI.ConfigDirectory)
	validateOptionalPath(p, field+".logFile", c.LogFile)
	levels := []string{"", "trace", "debug", "info", "warn", "error", "fatal", "panic"}
	if !slices.Contains(levels, c.LogLevel) {
		p.add(field+".logLevel", fmt.Sprintf("%.60q is not a level of containerd's log", c.LogLevel),
			"write one of "+strings.Join(levels[1:], ", "))
	}
	if c.PauseImage != "" && !matches(`[a-z0-9]([A-Za-z0-9._:/@-]*[A-Za-z0-9])?`, c.PauseImage) {
		p.add(field+".pauseImage", fmt.Sprintf("%.60q is not an image", c.PauseImage),
			"write it such as registry.k8s.io/pause:3.10")
	}
}

func validateKubelet(p *problems, field string, k Kubelet) {
	validateOptionalSource(p, field+".source", k.Source)
	validateOptionalSource(p, field+".kubeadmSource", k.KubeadmSource)
	validateOptionalSource(p, field+".logRunnerSource", k.LogRunnerSource)
	validateOptionalSource(p, field+".kubeProxySource", k.KubeProxySource)
	if k.LogFileSize != "" && !matches(`[0-9]{1,12}([kMG]|[KMG]i)?`, k.LogFileSize) {
		p.add(field+".logFileSize", fmt.Sprintf("%.60q is not a size", k.LogFileSize), "write it such as 100Mi, or 0 for no limit")
	}
	if k.LogFileAge != nil && k.LogFileAge.Duration < 0 {
		p.add(field+".logFileAge", "is below 0", "write it such as 168h, or 0s to keep all files")
	}
	for name, value := range sorted(k.ExtraArgs) {
		item := fmt.Sprintf("%s.extraArgs[%s]", field, name)
		switch {
		case strings.HasPrefix(name, "-"):
			p.add(item, "begins with a dash", "write the flag's name alone, "+strings.TrimLeft(name, "-"))
		case !matches(`[A-Za-z0-9][A-Za-z0-9.-]*`, name):
			p.add(item, "is not a flag's name", "write it as kubelet --help does, without the dashes")
		case hasControl(value):
			p.add(item, "has a control character", "remove it")
		}
	}
	taints := newSeen(p)
	for i, taint := range k.RegisterWithTaints {
		item := at(field+".registerWithTaints", i, "")
		if !matches(labelKey+`(=[A-Za-z0-9._-]{0,63})?:(NoSchedule|PreferNoSchedule|NoExecute)`, taint) {
			p.add(item, fmt.Sprintf("%.80q is not a taint", taint), "write it such as os=windows:NoSchedule")
			continue
		}
		taints.add(item, taint)
	}
	for key, value := range sorted(k.NodeLabels) {
		item := fmt.Sprintf("%s.nodeLabels[%s]", field, key)
		if !matches(labelKey, key) {
			p.add(item, "is not a label's key", "use letters, digits, and - _ . between them; a prefix ends in /")
		}
		if !matches(labelValue, value) {
			p.add(item, fmt.Sprintf("%.70q is not a label's value", value),
				"use at most 63 letters, digits, and - _ . between them")
		}
	}
}

func validateJoin(p *problems, field string, j Join) {
	if j.NodeName != "" && !matches(`[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?`, j.NodeName) {
		p.add(field+".nodeName", fmt.Sprintf("%.60q is not the name of a node", j.NodeName),
			"use at most 63 lower-case letters, digits, and - . between them")
	}
	validateNodeIP(p, field+".nodeIP", j.NodeIP)
	if j.ControlPlaneEndpoint != "" {
		validateHostname(p, field+".controlPlaneEndpoint", j.ControlPlaneEndpoint)
	}
	validateAlias(p, field+".controlPlaneAlias", j.ControlPlaneAlias)
	validateToken(p, field, j)
	if j.DiscoveryTokenCACertHash != "" && !matches(`sha256:[0-9a-f]{64}`, j.DiscoveryTokenCACertHash) {
		p.add(field+".discoveryTokenCACertHash", "is not the hash of a CA",
			"write sha256: and 64 hexadecimal digits, as kubeadm prints it")
	}
	for i, check := range j.IgnorePreflightErrors {
		if !matches(`[A-Za-z0-9][A-Za-z0-9-]*`, check) {
			p.add(at(field+".ignorePreflightErrors", i, ""), fmt.Sprintf("%.60q is not a check", check),
				"write the id that --preflight shows, or the word all")
		}
	}
}

// validateNodeIP accepts what kubelet does: an address, or one of each family.
func validateNodeIP(p *problems, field, nodeIP string) {
	if nodeIP == "" {
		return
	}
	first, second, pair := strings.Cut(nodeIP, ",")
	one, err := netip.ParseAddr(first)
	other, otherErr := netip.ParseAddr(second)
	switch {
	case err != nil || pair && otherErr != nil:
		p.add(field, fmt.Sprintf("%.60q is not an IP address", nodeIP), "write an IPv4 or IPv6 address, or one of each with a comma between them")
	case pair && one.Is4() == other.Is4():
		p.add(field, "has two addresses of one family", "write one IPv4 and one IPv6 address")
	}
}

func validateAlias(p *problems, field string, alias *ControlPlaneAlias) {
	if alias == nil {
		return
	}
	if p.required(field+".name", alias.Name, "write the name that the API server is reached by") &&
		checkHost(alias.Name) != nil {
		p.add(field+".name", fmt.Sprintf("%.60q is not a host name", alias.Name), "use letters, digits, - and .")
	}
	if _, err := netip.ParseAddr(alias.IP); p.required(field+".ip", alias.IP,
		"write the API server's address as the node reaches it") && err != nil {
		p.add(field+".ip", fmt.Sprintf("%.60q is not an IP address", alias.IP), "write an IPv4 or IPv6 address")
	}
}

// validateToken checks the bootstrap token and its source. The problems do not contain the
// token, since it is a secret.
func validateToken(p *problems, field string, j Join) {
	if j.Token != "" && !matches(`[a-z0-9]{6}\.[a-z0-9]{16}`, j.Token) {
		p.add(field+".token", "is not a bootstrap token",
			"write it as kubeadm token create prints it, or leave it out: swdt makes one")
	}
	if j.Token != "" && j.TokenFrom != nil {
		p.add(field+".tokenFrom", "is set beside token", "keep one of them")
	}
	validateSecretSource(p, field+".tokenFrom", j.TokenFrom)
}

func validateOptionalSource(p *problems, field, source string) {
	if source != "" {
		validateSource(p, field, source)
	}
}

func validateOptionalPath(p *problems, field, path string) {
	if _, err := CleanWindowsPath(path); path != "" && err != nil {
		p.addPath(field, err)
	}
}

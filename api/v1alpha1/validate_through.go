package v1alpha1

import (
	"fmt"
	"strings"
)

// validateThroughKubernetes checks the way through the cluster, which excludes SSH.
func validateThroughKubernetes(p *problems, field string, c Credentials, isVM bool) {
	for _, each := range []struct {
		name string
		set  bool
	}{
		{"username", c.Username != ""}, {"hostname", c.Hostname != ""}, {"privateKey", c.PrivateKey != ""},
		{"passphraseFrom", c.PassphraseFrom != nil}, {"password", c.Password != ""},
		{"passwordFrom", c.PasswordFrom != nil}, {"hostKey", c.HostKey != ""}, {"proxyJump", c.ProxyJump != ""},
	} {
		if each.set {
			p.add(field+"."+each.name, "is set beside kubernetes", "keep the fields of SSH, or kubernetes")
		}
	}
	if isVM {
		p.add(field+".kubernetes", "is set beside machine", "remove it: swdt reaches its own VMs by SSH")
	}
	k, field := c.Kubernetes, field+".kubernetes"
	if k.Node != "" && !matches(nodeNamePattern, k.Node) {
		p.add(field+".node", fmt.Sprintf("%.60q is not the name of a Node", k.Node), "`kubectl get nodes` lists them")
	}
	if k.Namespace != "" && !matches(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`, k.Namespace) {
		p.add(field+".namespace", fmt.Sprintf("%.60q is not a namespace", k.Namespace),
			"use lower-case letters, digits and - between them")
	}
	if strings.ContainsAny(k.Image, " \t\r\n") || hasControl(k.Image) || len(k.Image) > 512 {
		p.add(field+".image", "is not the name of an image", "write it as in a pod, with its registry and tag")
	}
	if hasControl(k.Context) {
		p.add(field+".context", "has a control character", "remove it")
	}
	if hasControl(k.Kubeconfig) {
		p.add(field+".kubeconfig", "is a kubeconfig, not the path of one", "put it into a file and write its path")
	}
}

const nodeNamePattern = `[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?`

package v1alpha1

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Problem is one invalid or unwise field of a node.
type Problem struct {
	Field  string // such as spec.kubernetes.provisioners[1].destination
	What   string // what is wrong, without the values of secrets
	Remedy string // what to do
}

// problems collects the problems of a node.
type problems []Problem

func (p *problems) add(field, what, remedy string) {
	*p = append(*p, Problem{Field: field, What: what, Remedy: remedy})
}

// required reports whether the field has a value, and adds a problem if it has none.
func (p *problems) required(field, value, remedy string) bool {
	if strings.TrimSpace(value) == "" {
		p.add(field, "is missing", remedy)
		return false
	}
	return true
}

// Validate returns every problem of a node whose defaults are set
// (SetDefaults). It does not check anything that needs the node or files.
func Validate(n *Node) []Problem {
	var p problems
	if n.APIVersion != APIVersion {
		p.add("apiVersion", fmt.Sprintf("%q is not understood", n.APIVersion), "write "+APIVersion)
	}
	if n.Kind != Kind {
		p.add("kind", fmt.Sprintf("%q is not understood", n.Kind), "write "+Kind)
	}
	validateMetadata(&p, n.Metadata)
	validateCredentials(&p, "spec.credentials", n.Spec.Credentials, n.Spec.Machine != nil)
	validateMachine(&p, "spec.machine", n.Spec.Machine)
	validateSetup(&p, "spec.setup", n.Spec.Setup)
	validateKubernetes(&p, "spec.kubernetes", n.Spec.Kubernetes)
	validateProvisioners(&p, "spec.kubernetes.provisioners", n.Spec.Kubernetes.Provisioners)
	return p
}

// Warnings returns the problems that do not prevent the use of the node file.
func Warnings(n *Node) []Problem {
	var p problems
	if n.Spec.Credentials.Password != "" {
		p.add("spec.credentials.password", "the password is in the file in clear text",
			"use passwordFrom with env or file, or a key")
	}
	if n.Spec.Kubernetes.Join.Token != "" {
		p.add("spec.kubernetes.join.token", "the token is in the file in clear text",
			"leave it out: swdt makes one and deletes it after use, or use tokenFrom")
	}
	if n.Spec.Machine != nil && n.Spec.Machine.Image.ProductKey != "" {
		p.add("spec.machine.image.productKey", "the product key is in the file in clear text",
			"let no other user read the file, or leave the key out for evaluation media")
	}
	if m := n.Spec.Machine; m != nil && m.Network.Mode == "user" && !m.Network.Outbound && len(n.Spec.Setup.ChocoPackages) > 0 {
		p.add("spec.setup.chocoPackages", "the VM reaches no server to download them from",
			"write outbound: true in spec.machine.network, or use mode: bridge")
	}
	for i, provisioner := range n.Spec.Kubernetes.Provisioners {
		if hasUserInfo(provisioner.SourceURL) {
			p.add(at("spec.kubernetes.provisioners", i, "sourceURL"), "the URL holds a user or password in clear text",
				"write it as a $VARIABLE")
		}
	}
	return p
}

// Patterns of a label's key and of its value, as in Kubernetes.
const (
	labelKey   = `([-a-z0-9.]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
	labelValue = `([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?`
)

func validateMetadata(p *problems, m Metadata) {
	if p.required("metadata.name", m.Name, "name the node, as used with --node") &&
		!matches(`[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?`, m.Name) {
		p.add("metadata.name", fmt.Sprintf("%.60q is not a name", m.Name),
			"use letters, digits, and - _ . between them")
	}
	validateLabels(p, m.Labels)
}

func validateLabels(p *problems, labels map[string]string) {
	for key, value := range sorted(labels) {
		field := fmt.Sprintf("metadata.labels[%s]", key)
		if !matches(labelKey, key) {
			p.add(field, "is not a label's key", "use letters, digits, and - _ . between them; a prefix ends in /")
		}
		if !matches(labelValue, value) {
			p.add(field, fmt.Sprintf("%.70q is not a label's value", value),
				"use at most 63 letters, digits, and - _ . between them")
		}
	}
}

// validateCredentials checks how swdt logs in. A VM that swdt makes needs no hostname.
func validateCredentials(p *problems, field string, c Credentials, isVM bool) {
	if c.Kubernetes != nil {
		validateThroughKubernetes(p, field, c, isVM)
		return
	}
	if c.Hostname != "" || !isVM {
		validateHostname(p, field+".hostname", c.Hostname)
	}
	if hasControl(c.Username) {
		p.add(field+".username", "has a control character", "remove it")
	}
	validateMethods(p, field, c)
	validateSecretSource(p, field+".passwordFrom", c.PasswordFrom)
	validateSecretSource(p, field+".passphraseFrom", c.PassphraseFrom)
	validateHostKey(p, field+".hostKey", c.HostKey)
	validateProxyJump(p, field+".proxyJump", c.ProxyJump)
}

func validateHostname(p *problems, field, hostname string) {
	const form = "write host or host:port, such as 192.168.122.220:22"
	if !p.required(field, hostname, form) {
		return
	}
	if _, rest, ok := strings.Cut(hostname, "://"); ok {
		p.add(field, "is a URL", "write only "+strings.TrimRight(rest[strings.LastIndex(rest, "@")+1:], "/"))
		return
	}
	if i := strings.LastIndex(hostname, "@"); i >= 0 {
		p.add(field, "names a user too", "write the user as username, and here only "+hostname[i+1:])
		return
	}
	if _, _, err := HostPort(hostname); err != nil {
		p.add(field, fmt.Sprintf("%.80q is not a host: %v", hostname, err), form)
	}
}

// validateMethods checks the ways to log in, of which at most one may be set.
func validateMethods(p *problems, field string, c Credentials) {
	var methods []string
	if c.PrivateKey != "" {
		methods = append(methods, "privateKey")
	}
	if c.Password != "" {
		methods = append(methods, "password")
	}
	if c.PasswordFrom != nil {
		methods = append(methods, "passwordFrom")
	}
	if len(methods) > 1 {
		p.add(field+"."+methods[1], "is set beside "+methods[0], "keep one of them")
	}
	if c.PassphraseFrom != nil && c.PrivateKey == "" && len(methods) > 0 {
		p.add(field+".passphraseFrom", "is set, but there is no key that it could unlock",
			"set privateKey, or remove it")
	}
	if strings.Contains(c.PrivateKey, "PRIVATE KEY") || hasControl(c.PrivateKey) {
		p.add(field+".privateKey", "is a key, not the path of one", "put the key into a file and write its path")
	}
}

func validateSecretSource(p *problems, field string, s *SecretSource) {
	if s == nil {
		return
	}
	switch {
	case s.Env == "" && s.File == "":
		p.add(field, "says neither env nor file", "set one of them")
	case s.Env != "" && s.File != "":
		p.add(field+".file", "is set beside env", "keep one of them")
	case s.Env != "" && !matches(`[A-Za-z_][A-Za-z0-9_]*`, s.Env):
		// The value may be the secret itself, so the message does not contain it.
		p.add(field+".env", "is not the name of an environment variable",
			"write the name alone, without $ or %, such as SWDT_PASSWORD")
	}
}

func validateHostKey(p *problems, field, fingerprint string) {
	const show = "`ssh-keyscan HOST | ssh-keygen -lf -` shows the fingerprints, as in SHA256:…"
	if fingerprint == "" {
		return
	}
	digest, ok := strings.CutPrefix(fingerprint, "SHA256:")
	if raw, err := base64.RawStdEncoding.DecodeString(digest); !ok || err != nil || len(raw) != 32 {
		p.add(field, "is not the SHA256 fingerprint of a host key", show)
	}
}

func validateProxyJump(p *problems, field, jumps string) {
	if jumps == "" || jumps == "none" {
		return
	}
	for jump := range strings.SplitSeq(jumps, ",") {
		host := jump[strings.LastIndex(jump, "@")+1:]
		if _, _, err := HostPort(host); err != nil || strings.HasPrefix(jump, "@") {
			p.add(field, fmt.Sprintf("%.80q is not a jump host", jump),
				"write [user@]host[:port], several with commas and no spaces")
		}
	}
}

// addPath adds the problem that a *PathError describes.
func (p *problems) addPath(field string, err error) {
	if refused := new(PathError); errors.As(err, &refused) {
		p.add(field, refused.What, refused.Remedy)
	}
}

func at(list string, index int, field string) string {
	if field == "" {
		return fmt.Sprintf("%s[%d]", list, index)
	}
	return fmt.Sprintf("%s[%d].%s", list, index, field)
}

// matches reports whether the whole text fits the pattern.
func matches(pattern, text string) bool {
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(text)
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

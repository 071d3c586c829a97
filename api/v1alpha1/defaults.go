package v1alpha1

import (
	"strings"
	"time"
)

// What a restarted service is given when its health says nothing.
const (
	DefaultSettle      = time.Second
	DefaultTimeout     = 60 * time.Second
	DefaultStopTimeout = 30 * time.Second
)

// DefaultPort is where sshd listens when the hostname names no port.
const DefaultPort = 22

// knownService is what swdt knows of a service without being told.
type knownService struct {
	dependsOn []string
	health    Health
}

// knownServices is everything that depends on a service's name, by its name in
// lower case.
func knownServices() map[string]knownService {
	return map[string]knownService{
		"containerd": {health: Health{CRIPipe: `\\.\pipe\containerd-containerd`}},
		"kubelet": {
			dependsOn: []string{"containerd"},
			health:    Health{HTTPGet: "http://127.0.0.1:10248/healthz"},
		},
		"kube-proxy": {dependsOn: []string{"containerd"}},
	}
}

// DefaultDependsOn names the services that a service is known to need, beside
// what the file and the node's Service Control Manager say. They may not exist
// on the node.
func DefaultDependsOn(name string) []string {
	return knownServices()[strings.ToLower(name)].dependsOn
}

// DefaultHealth is the check for a service whose file names none, with every
// duration set. For a service that is not known, only the settle time counts.
func DefaultHealth(name string) Health {
	health := knownServices()[strings.ToLower(name)].health
	health.Settle = &Duration{DefaultSettle}
	health.Timeout = &Duration{DefaultTimeout}
	health.StopTimeout = &Duration{DefaultStopTimeout}
	return health
}

// SetDefaults fills in what a reader of the file expects where it says nothing,
// and gives Windows paths their usual form: backslashes, none doubled. It may be
// called on a node that has yet to be validated, and more than once.
func SetDefaults(n *Node) {
	for i := range n.Spec.Setup.Firewall {
		defaultFirewallRule(&n.Spec.Setup.Firewall[i])
	}
	defaultKubernetes(&n.Spec.Kubernetes)
	for i := range n.Spec.Kubernetes.Provisioners {
		defaultProvisioner(&n.Spec.Kubernetes.Provisioners[i])
	}
}

func defaultFirewallRule(r *FirewallRule) {
	orElse(&r.Direction, "in")
	orElse(&r.Action, "allow")
	orElse(&r.Protocol, "tcp")
	orElse(&r.Ports, "any")
	orElse(&r.Profiles, "any")
	orElse(&r.Addresses, "any")
}

func defaultProvisioner(p *Provisioner) {
	if p.Overwrite == nil {
		overwrite := true
		p.Overwrite = &overwrite
	}
	// A separator at the end says folder, which validation is to see.
	if clean, err := CleanWindowsPath(p.Destination); err == nil && !endsInSeparator(p.Destination) {
		p.Destination = clean
	}
	p.SHA256 = strings.ToLower(p.SHA256)
	p.Health = completeHealth(p.Name, p.Health)
	defaultBuild(p.Build)
}

// completeHealth joins what the file says of a service's health with what is
// known of it.
func completeHealth(name string, given *Health) *Health {
	health := DefaultHealth(name)
	if given == nil {
		return &health
	}
	if given.HTTPGet != "" || given.CRIPipe != "" || given.None {
		health.HTTPGet, health.CRIPipe, health.None = given.HTTPGet, cleanPipe(given.CRIPipe), given.None
	}
	if given.Settle != nil {
		health.Settle = given.Settle
	}
	if given.Timeout != nil {
		health.Timeout = given.Timeout
	}
	if given.StopTimeout != nil {
		health.StopTimeout = given.StopTimeout
	}
	return &health
}

// cleanPipe turns the URL and slash forms of a pipe's name, as CRI tools write
// them (npipe:////./pipe/x), into the form that Windows opens.
func cleanPipe(pipe string) string {
	name := strings.TrimPrefix(pipe, "npipe://")
	return strings.ReplaceAll(name, "/", `\`)
}

func orElse(value *string, fallback string) {
	if *value == "" {
		*value = fallback
	}
}

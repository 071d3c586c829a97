package v1alpha1

import (
	"cmp"
	"strings"
	"time"
)

// The default durations of a service's health check.
const (
	DefaultSettle      = time.Second
	DefaultTimeout     = 60 * time.Second
	DefaultStopTimeout = 30 * time.Second
)

// DefaultPort is the SSH port if the hostname has none.
const DefaultPort = 22

// knownService has the settings that swdt knows for a service, so that the node
// file need not have them.
type knownService struct {
	dependsOn []string
	health    Health
}

// knownServices returns the settings that swdt knows. The keys are the services' names
// in lower case.
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

// NoService is the value of a provisioner's service that says that none runs its binary.
const NoService = "none"

// RunBy returns the name of the Windows service that runs the provisioner's binary; "" if the node
// file says that none does.
func (p Provisioner) RunBy() string {
	if strings.EqualFold(p.Service, NoService) {
		return ""
	}
	return cmp.Or(p.Service, p.Name)
}

// DefaultDependsOn returns the services that a service is known to need, in
// addition to those that the file and the node's Service Control Manager name.
// The returned services need not exist on the node.
func DefaultDependsOn(name string) []string {
	return knownServices()[strings.ToLower(name)].dependsOn
}

// DefaultHealth returns the health check of a service for which the node file sets none. All
// durations are set. For an unknown service there is neither a URL nor a pipe to check.
func DefaultHealth(name string) Health {
	health := knownServices()[strings.ToLower(name)].health
	health.Settle = &Duration{DefaultSettle}
	health.Timeout = &Duration{DefaultTimeout}
	health.StopTimeout = &Duration{DefaultStopTimeout}
	return health
}

// SetDefaults fills in the fields that the file leaves out, and gives Windows
// paths their usual form: backslashes, none doubled. It accepts a node that is
// not validated yet, and may be called more than once.
func SetDefaults(n *Node) {
	for i := range n.Spec.Setup.Firewall {
		defaultFirewallRule(&n.Spec.Setup.Firewall[i])
	}
	defaultMachine(n.Spec.Machine)
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
	// A destination with a separator at its end is a folder. Keep the separator, so that
	// validation rejects the destination.
	if clean, err := CleanWindowsPath(p.Destination); err == nil && !endsInSeparator(p.Destination) {
		p.Destination = clean
	}
	p.SHA256 = strings.ToLower(p.SHA256)
	p.Health = completeHealth(p.Name, p.Health)
	defaultBuild(p.Build)
}

// completeHealth merges the health that the file gives with the default health
// of the service.
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

// cleanPipe converts the URL and slash forms of a pipe's name, as CRI tools
// write them (npipe:////./pipe/x), into the form that Windows opens.
func cleanPipe(pipe string) string {
	name := strings.TrimPrefix(pipe, "npipe://")
	return strings.ReplaceAll(name, "/", `\`)
}

func orElse(value *string, fallback string) {
	if *value == "" {
		*value = fallback
	}
}

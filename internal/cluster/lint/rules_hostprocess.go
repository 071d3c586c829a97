package lint

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// hostProcessRules are about HostProcess containers, beside those of the API server.
func hostProcessRules() []Rule {
	return []Rule{
		{
			ID: "hpc-user", Severity: finding.Error, Effect: Fails,
			Title:  "HostProcess containers run as a service account or a local group of the node",
			Means:  "the container does not start: Windows has no password for another user. A name of a local group makes a temporary user in it.",
			Remedy: `write NT AUTHORITY\SYSTEM, NT AUTHORITY\Local service, NT AUTHORITY\NetworkService, or a local group such as Administrators`,
			Source: hcsshimAt + "internal/jobcontainers/logon.go", windows: hostProcessUser,
			Bad:  "hostNetwork: true\nsecurityContext: {windowsOptions: {hostProcess: true, runAsUserName: ContainerUser}}",
			Good: hostProcessExample,
		},
		{
			ID: "hpc-pipe-mount", Severity: finding.Error, Effect: Fails,
			Title:  "HostProcess containers mount no named pipes",
			Means:  "the container does not start: named pipe mounts are not supported for job containers.",
			Remedy: "remove the mount: the container can open the pipe directly", Source: hcsshimAt + "internal/jobcontainers/mounts.go",
			windows: pipeOfHostProcess,
			Bad: hostProcessExample + "\nvolumes: [{name: p, hostPath: {path: '\\\\.\\pipe\\containerd-containerd'}}]\n" +
				"containers: [{name: a, image: 'a:1', volumeMounts: [{name: p, mountPath: '\\\\.\\pipe\\containerd-containerd'}]}]",
			Good: hostProcessExample,
		},
		{
			ID: "hpc-hyperv", Severity: finding.Error, Effect: Fails,
			Title:  "HostProcess pods are not isolated by Hyper-V",
			Means:  "a HostProcess container is a process of the node: it does not start in a virtual machine.",
			Remedy: "remove runtimeClassName", Source: "https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/#limitations",
			windows: hypervOfHostProcess,
			Bad:     hostProcessExample + "\nruntimeClassName: runhcs-wcow-hypervisor", Good: hostProcessExample,
		},
		{
			ID: "hpc-aliases", Severity: finding.Warning, Effect: Ignored, fix: removal(),
			Title:  "HostProcess pods have no hostAliases",
			Means:  "kubelet mounts no hosts file into them: they resolve names as the node does.",
			Remedy: "remove hostAliases, and write the names into the node's hosts file", Source: kubernetesAt + "pkg/kubelet/kubelet_pods.go",
			windows: aliasesOfHostProcess,
			Bad:     hostProcessExample + "\nhostAliases: [{ip: 10.0.0.4, hostnames: [db]}]", Good: hostProcessExample,
		},
		{
			ID: "hpc-ephemeral", Severity: finding.Info, Effect: Ignored, fix: removal(),
			Title:  "HostProcess containers have no limit of ephemeral-storage",
			Means:  "the limit does not bind: they write to the node's own disk.",
			Remedy: "remove the limit", Source: kepAt, windows: storageOfHostProcess,
			Bad: hostProcessExample + "\ncontainers: [{name: a, image: 'a:1', resources: {limits: {memory: 1Gi, ephemeral-storage: 1Gi}}}]", Good: hostProcessExample,
		},
	}
}

func hostProcessUser(p *pods, found report) {
	for _, c := range p.containers() {
		user, at := p.user(c)
		if !p.hostProcess(c) || user == nil {
			continue
		}
		domain, name, qualified := strings.Cut(*user, `\`)
		switch {
		case !qualified && (strings.EqualFold(*user, administrator) || strings.EqualFold(*user, "ContainerUser")):
			found(seen{at: at, what: fmt.Sprintf("the node has no user %s: it is one of container images", *user)})
		case qualified && name != "" && domain != "NT AUTHORITY":
			found(seen{at: at, what: fmt.Sprintf("container %s does not start, unless %s is a local group: Windows asks for the password of a user", c.Name, *user),
				severity: finding.Warning})
		}
	}
}

func pipeOfHostProcess(p *pods, found report) {
	for _, m := range p.mounts() {
		if p.hostProcess(m.container) && m.volume != nil && m.volume.HostPath != nil && isPipe(m.volume.HostPath.Path) {
			found(seen{at: m.path, what: fmt.Sprintf("container %s does not start: it is a HostProcess container, and mounts a named pipe", m.container.Name)})
		}
	}
}

// isPipe reports whether a path of the node is a named pipe.
func isPipe(path string) bool {
	return strings.HasPrefix(strings.ToLower(strings.ReplaceAll(path, "/", `\`)), `\\.\pipe\`)
}

func hypervOfHostProcess(p *pods, found report) {
	if class := p.spec.RuntimeClassName; class != nil && strings.Contains(*class, "wcow-hypervisor") && p.isHostProcess() {
		found(seen{at: p.at("runtimeClassName"), what: "HostProcess containers do not start with isolation by Hyper-V"})
	}
}

func aliasesOfHostProcess(p *pods, found report) {
	if len(p.spec.HostAliases) > 0 && p.isHostProcess() {
		found(seen{at: p.at("hostAliases"), what: "hostAliases have no effect in HostProcess pods"})
	}
}

func storageOfHostProcess(p *pods, found report) {
	for _, c := range p.containers() {
		if _, limited := c.Resources.Limits["ephemeral-storage"]; limited && p.hostProcess(c) {
			found(seen{at: c.path.child("resources", "limits", "ephemeral-storage"), what: "the limit has no effect in a HostProcess container"})
		}
	}
}

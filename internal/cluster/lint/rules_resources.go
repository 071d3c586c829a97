package lint

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// resourceRules are about memory, devices and their changes.
func resourceRules() []Rule {
	return []Rule{
		{
			ID: "res-memory-limit", whole: true, Severity: finding.Info, Effect: Noted,
			Title: "containers have a limit of memory",
			Means: "Windows has no process that ends others when memory runs out: a container without a limit grows into the page file, and slows " +
				"the node down. Requests do not bound it.",
			Remedy: "write resources.limits.memory", Source: "https://kubernetes.io/docs/concepts/configuration/windows-resource-management/#resource-management-memory",
			windows: memoryLimit,
			Bad:     "containers: [{name: a, image: 'a:1'}]", Good: "containers: [{name: a, image: 'a:1', resources: {limits: {memory: 1Gi}}}]",
		},
		{
			ID: "res-dra", Severity: finding.Error, Effect: Fails,
			Title:  "pods claim no devices",
			Means:  "kubelet on Windows prepares no devices of ResourceClaims: the containers start without them.",
			Remedy: "remove resourceClaims; use a device plugin", Source: kubernetesAt + "pkg/kubelet/cm/container_manager_windows.go", windows: claims,
			Bad: "resourceClaims: [{name: gpu, resourceClaimName: gpu}]", Good: "  ports: [{containerPort: 80}]",
		},
		{
			ID: "res-resize", Severity: finding.Warning, Effect: Ignored, fix: removal(),
			Title:  "containers have no resizePolicy",
			Means:  "pods on Windows are not resized in place: the API server rejects it with spec.os.name windows, and kubelet otherwise.",
			Remedy: "remove resizePolicy; replace the pods to change their resources", Source: kubernetesAt + "pkg/kubelet/allocation/features_windows.go",
			windows: resizePolicy,
			Bad:     "  resizePolicy: [{resourceName: memory, restartPolicy: NotRequired}]", Good: "  ports: [{containerPort: 80}]",
		},
	}
}

func memoryLimit(p *pods, found report) {
	for i := range p.spec.Containers {
		if _, limited := p.spec.Containers[i].Resources.Limits["memory"]; !limited {
			found(seen{at: p.at("containers").index(i), what: "the container has no limit of memory"})
		}
	}
}

func claims(p *pods, found report) {
	if len(p.spec.ResourceClaims) > 0 {
		found(seen{at: p.at("resourceClaims"), what: "the containers start without the devices that they claim"})
	}
}

func resizePolicy(p *pods, found report) {
	for _, c := range p.containers() {
		if len(c.ResizePolicy) > 0 {
			found(seen{at: c.path.child("resizePolicy"), what: fmt.Sprintf("container %s is not resized in place on Windows", c.Name)})
		}
	}
}

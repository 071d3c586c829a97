package network

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// isKinds reports whether a Docker network is the network on which kind makes clusters.
func isKinds(name string) bool {
	if other := os.Getenv("KIND_EXPERIMENTAL_DOCKER_NETWORK"); other != "" {
		return name == other
	}
	return name == "kind"
}

// checkAlias compares the control plane's address in the node file with the address of the control
// plane's container. Docker may give a container another address when the container starts again.
func (f *Findings) checkAlias(w Wanted) {
	if f.Place.Docker == nil || w.Alias.Name == "" {
		return
	}
	now, known := f.Place.Docker.Containers[w.Alias.Name]
	switch {
	case !known && f.Place.Subnet.Contains(w.Alias.Address):
		f.add("control-plane", finding.Warning,
			"containers of the network: "+names(f.Place.Docker),
			"no container "+w.Alias.Name+" runs on the VM's network",
			"start the cluster, or correct spec.kubernetes.join.controlPlaneAlias")
	case known && now != w.Alias.Address:
		f.add("control-plane", finding.Error,
			fmt.Sprintf("the container has %s, and spec.kubernetes.join.controlPlaneAlias.ip is %s", now, w.Alias.Address),
			"the API server's container has another address than before",
			fmt.Sprintf("write `ip: %s` into spec.kubernetes.join.controlPlaneAlias, then `swdt join` again", now))
	}
}

func names(n *DockerNetwork) string {
	if len(n.Containers) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(n.Containers)), ", ")
}

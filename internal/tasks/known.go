package tasks

import (
	"slices"
	"strings"
)

// serviceNames are the services of a node that are shown, in this order: to add
// one, add its name.
func serviceNames() []string {
	return []string{
		"kubelet", "containerd", "kube-proxy",
		"CalicoNode", "CalicoFelix", "CalicoConfd", "antrea-agent", "ovsdb-server", "ovs-vswitchd", "flanneld",
		"csi-proxy", "rke2", "rancher-wins", "docker", "cri-dockerd",
	}
}

// runtimeFolders are where a runtime keeps its programs, those that it starts for
// pods, and the files of HostProcess containers: what runs from there belongs to
// it. The service's own folder is added.
func runtimeFolders() []string {
	return []string{
		`C:\Program Files\containerd\`, `C:\ProgramData\containerd\`, `C:\opt\cni\bin\`, `C:\hpc\`, `C:\C\`,
	}
}

// kubernetesNamespace is containerd's, of what the CRI makes. Others (moby, default)
// have shims too, of which the CRI knows nothing.
const kubernetesNamespace = "k8s.io"

// isShim is whether a program is one of containerd's shims.
func isShim(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "containerd-shim-")
}

// isBelow is whether a program stands in one of the folders.
func isBelow(image string, folders []string) bool {
	image = strings.ToLower(image)
	return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(image, strings.ToLower(folder)) })
}

// folderOf a program, with a backslash at its end; of one in a folder bin the
// folder above.
func folderOf(program string) string {
	folder := program[:strings.LastIndexAny(program, `\/`)+1]
	if above, ok := strings.CutSuffix(strings.ToLower(folder), `\bin\`); ok {
		folder = folder[:len(above)+1]
	}
	if len(folder) <= len(`C:\`) { // of a whole disk nothing follows
		return ""
	}
	return folder
}

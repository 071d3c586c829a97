package owners

import (
	"slices"
	"strings"
)

// serviceNames returns the services of a Kubernetes node, in the order in which they are
// listed. To add a service, add its name.
func serviceNames() []string {
	return []string{
		"kubelet", "containerd", "kube-proxy",
		"CalicoNode", "CalicoFelix", "CalicoConfd", "antrea-agent", "ovsdb-server", "ovs-vswitchd", "flanneld",
		"csi-proxy", "rke2", "rancher-wins", "docker", "cri-dockerd",
	}
}

// runtimeFolders returns the default folders of a runtime's programs, of the programs that the
// runtime starts for pods, and of the files of HostProcess containers. Processes of programs in
// these folders belong to the runtime. The caller adds the folder of the program that the service
// containerd runs.
func runtimeFolders() []string {
	return []string{
		`C:\Program Files\containerd\`, `C:\ProgramData\containerd\`, `C:\opt\cni\bin\`, `C:\hpc\`, `C:\C\`,
	}
}

// kubernetesNamespace is the containerd namespace of objects that the CRI creates. The
// CRI does not know the shims of other namespaces (moby, default).
const kubernetesNamespace = "k8s.io"

// isShim reports whether a program is one of containerd's shims.
func isShim(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "containerd-shim-")
}

// isBelow reports whether a program is in one of the folders.
func isBelow(image string, folders []string) bool {
	image = strings.ToLower(image)
	return slices.ContainsFunc(folders,
		func(folder string) bool { return strings.HasPrefix(image, strings.ToLower(folder)) })
}

// folderOf returns the folder of a program, with a backslash at its end. If that folder
// is called "bin", it returns the parent folder. It returns "" if the result would be
// the root of a drive.
func folderOf(program string) string {
	folder := program[:strings.LastIndexAny(program, `\/`)+1]
	if above, ok := strings.CutSuffix(strings.ToLower(folder), `\bin\`); ok {
		folder = folder[:len(above)+1]
	}
	if len(folder) <= len(`C:\`) { // a whole drive also contains programs of other owners
		return ""
	}
	return folder
}

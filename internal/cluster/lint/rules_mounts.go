package lint

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// mountRules are about the mounts of containers.
func mountRules() []Rule {
	return []Rule{
		{
			ID: "vol-propagation", Severity: finding.Warning, Effect: Ignored, fix: removal(),
			Title:  "no mount is propagated",
			Means:  "kubelet on Windows makes each mount a private one: what one side mounts later, the other does not see.",
			Remedy: "remove mountPropagation", Source: kubernetesAt + "pkg/kubelet/kubelet_pods.go", windows: propagation,
			Bad:  mounting("mountPath: 'C:\\v', mountPropagation: Bidirectional"),
			Good: mounting(`mountPath: 'C:\v'`),
		},
		{
			ID: "vol-rro", Severity: finding.Error, Effect: Fails, fix: &fix{value: "IfPossible"},
			Title:  "no mount is recursively read-only",
			Means:  "kubelet does not start the container: the runtime on Windows does not support it.",
			Remedy: "remove recursiveReadOnly, or write IfPossible", Source: kubernetesAt + "pkg/kubelet/kubelet_pods.go", windows: recursive,
			Bad:  mounting("mountPath: 'C:\\v', readOnly: true, recursiveReadOnly: Enabled"),
			Good: mounting("mountPath: 'C:\\v', readOnly: true"),
		},
		{
			ID: "vol-block", Severity: finding.Error, Effect: Fails,
			Title:  "no container has a raw block device",
			Means:  "kubelet on Windows maps none: the pods stay in ContainerCreating.",
			Remedy: "mount a file system with volumeMounts", Source: kubernetesAt + "pkg/volume/util/volumepathhandler/volume_path_handler_unsupported.go", windows: blockDevices,
			Bad: "volumes: [{name: v, persistentVolumeClaim: {claimName: v}}]\ncontainers: [{name: a, image: 'a:1', " +
				"volumeDevices: [{name: v, devicePath: /dev/x}], resources: {limits: {memory: 1Gi}}}]",
			Good: "volumes: [{name: v, persistentVolumeClaim: {claimName: v}}]",
		},
		{
			ID: "vol-dest-c", Severity: finding.Error, Effect: Fails,
			Title:  "no volume is mounted as drive C:",
			Means:  "containerd does not make the container: destination path can not be C drive.",
			Remedy: `mount it at a folder such as C:\data, or as another drive such as D:`, Source: containerdAt + "internal/cri/opts/spec_windows_opts.go", windows: driveC,
			Bad: mounting("mountPath: 'C:'"), Good: mounting("mountPath: 'D:'"),
		},
		{
			ID: "vol-subpath", Severity: finding.Info, Effect: Noted, Until: "1.37",
			Title:  "pods have one mount with a subPath at most",
			Means:  "the mounts work. With several, kubelet before 1.37 can leave handles open, and the pods stay in Terminating.",
			Remedy: "mount the folders without subPath, or update kubelet", Source: "https://github.com/kubernetes/kubernetes/pull/138367", windows: subPaths,
			Bad: mounting("mountPath: 'C:\\a', subPath: a}, {name: v, mountPath: 'C:\\b', subPath: b"), Good: mounting("mountPath: 'C:\\a', subPath: a"),
		},
	}
}

// mounting returns an example with one mount.
func mounting(mount string) string {
	return "volumes: [{name: v, emptyDir: {}}]\ncontainers: [{name: a, image: 'a:1', volumeMounts: [{name: v, " + mount +
		"}], resources: {limits: {memory: 1Gi}}}]"
}

// mount is a mount of a container.
type mount struct {
	corev1.VolumeMount
	container container
	volume    *corev1.Volume // nil: the pods have no volume of that name
	path      path
}

// mounts returns the mounts of all containers.
func (p *pods) mounts() (all []mount) {
	for _, c := range p.containers() {
		for i, m := range c.VolumeMounts {
			one := mount{VolumeMount: m, container: c, path: c.path.child("volumeMounts").index(i)}
			for j := range p.spec.Volumes {
				if p.spec.Volumes[j].Name == m.Name {
					one.volume = &p.spec.Volumes[j]
				}
			}
			all = append(all, one)
		}
	}
	return all
}

func propagation(p *pods, found report) {
	for _, m := range p.mounts() {
		if mode := m.MountPropagation; mode != nil && *mode != corev1.MountPropagationNone {
			found(seen{at: m.path.child("mountPropagation"), what: fmt.Sprintf("mountPropagation %s has no effect on Windows", *mode)})
		}
	}
}

func recursive(p *pods, found report) {
	for _, m := range p.mounts() {
		if mode := m.RecursiveReadOnly; mode != nil && *mode == corev1.RecursiveReadOnlyEnabled {
			found(seen{at: m.path.child("recursiveReadOnly"), what: fmt.Sprintf("container %s does not start: the runtime has no recursively read-only mounts", m.container.Name)})
		}
	}
}

func blockDevices(p *pods, found report) {
	for _, c := range p.containers() {
		if len(c.VolumeDevices) > 0 {
			found(seen{at: c.path.child("volumeDevices"), what: fmt.Sprintf("container %s gets no block device on Windows", c.Name)})
		}
	}
}

func subPaths(p *pods, found report) {
	var all []path
	for _, m := range p.mounts() {
		if m.SubPath != "" || m.SubPathExpr != "" {
			all = append(all, m.path)
		}
	}
	if len(all) > 1 {
		found(seen{at: all[1], what: fmt.Sprintf("%s have a subPath: kubelet can leave their handles open", finding.Several(len(all), "mount"))})
	}
}

func driveC(p *pods, found report) {
	for _, m := range p.mounts() {
		if m.volume != nil && m.volume.HostPath != nil && isPipe(m.volume.HostPath.Path) {
			continue
		}
		if strings.EqualFold(m.MountPath, "C:") {
			found(seen{at: m.path.child("mountPath"), what: fmt.Sprintf("containerd does not make container %s: it mounts a volume as drive C:", m.container.Name)})
		}
	}
}

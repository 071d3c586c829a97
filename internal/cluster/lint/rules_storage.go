package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// storageRules are about the volumes of pods.
func storageRules() []Rule {
	const mountAt = "https://github.com/kubernetes/mount-utils/blob/v0.36.3/mount_windows.go"
	return []Rule{
		{
			ID: "vol-memory", Severity: finding.Warning, Effect: Changed, fix: removal(),
			Title:  "no emptyDir is in memory",
			Means:  "medium: Memory is a folder on the node's disk: what is in it is written to the disk, and does not count as memory.",
			Remedy: "remove medium; keep no secrets there that must not be on a disk", Source: mountAt, windows: memoryVolumes,
			Bad: "volumes: [{name: v, emptyDir: {medium: Memory}}]", Good: "volumes: [{name: v, emptyDir: {}}]",
		},
		{
			ID: "vol-hugepages", Severity: finding.Error, Effect: Fails,
			Title:  "nothing asks for huge pages",
			Means:  "Windows nodes have none: the pods are not scheduled, or the volume is not mounted.",
			Remedy: "remove them", Source: introAt, windows: hugePages,
			Bad: "volumes: [{name: v, emptyDir: {medium: HugePages}}]", Good: "volumes: [{name: v, emptyDir: {}}]",
		},
		{
			ID: "vol-type", Severity: finding.Error, Effect: Fails,
			Title:  "volumes are of a kind that Windows can mount",
			Means:  "kubelet on Windows mounts SMB and folders alone: the pods stay in ContainerCreating. containerd mounts no image as a volume on Windows.",
			Remedy: "use SMB (csi-driver-smb), or a CSI driver that has Windows pods", Source: mountAt, windows: volumeKinds,
			Bad: "volumes: [{name: v, nfs: {server: a, path: /b}}]", Good: "volumes: [{name: v, persistentVolumeClaim: {claimName: v}}]",
		},
		{
			ID: "vol-fstype", Severity: finding.Warning, Effect: Fails, fix: &fix{value: "ntfs"},
			Title:  "volumes have a file system of Windows",
			Means:  "Windows formats and mounts NTFS, and with some drivers ReFS.",
			Remedy: "write fsType: ntfs", Source: "https://kubernetes.io/docs/concepts/storage/volumes/", windows: fileSystems,
			Bad: "volumes: [{name: v, csi: {driver: d, fsType: ext4}}]", Good: "volumes: [{name: v, csi: {driver: d, fsType: ntfs}}]",
		},
		{
			ID: "vol-hostpath-unix", Severity: finding.Warning, Effect: Changed,
			Title:  "a hostPath names a folder of Windows",
			Means:  `a path without a drive is one of drive C:, such as C:\etc. If the folder is missing, containerd makes an empty one.`,
			Remedy: `write a path of Windows, such as C:\var\log`, Source: containerdAt + "internal/cri/opts/spec_windows_opts.go", windows: unixHostPaths,
			Bad: "volumes: [{name: v, hostPath: {path: /etc/ssl/certs}}]", Good: `volumes: [{name: v, hostPath: {path: 'C:\certs'}}]`,
		},
		{
			ID: "vol-hostpath-type", Severity: finding.Error, Effect: Fails, fix: removal(),
			Title:  "the type of a hostPath is one that Windows has",
			Means:  "kubelet does not find that type, so the volume is not mounted. A named pipe has no type that kubelet can check.",
			Remedy: "remove type", Source: kubernetesAt + "pkg/volume/hostpath/host_path.go", windows: hostPathTypes,
			Bad:  `volumes: [{name: v, hostPath: {path: '\\.\pipe\x', type: File}}]`,
			Good: `volumes: [{name: v, hostPath: {path: '\\.\pipe\x'}}]`,
		},
		{
			ID: "vol-modes", Severity: finding.Info, Effect: Ignored,
			Title:  "no mode of files protects a Secret",
			Means:  "defaultMode and mode do not become access lists of Windows: each user of the container can read the files, unless the folder keeps it away. 0644, which the API server writes, is not found.",
			Remedy: "do not rely on the mode", Source: "https://kubernetes.io/docs/concepts/configuration/secret/", windows: fileModes,
			Bad: "volumes: [{name: v, secret: {secretName: s, defaultMode: 0400}}]", Good: "volumes: [{name: v, secret: {secretName: s}}]",
		},
	}
}

func memoryVolumes(p *pods, found report) {
	for i, v := range p.spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			// kubelet counts a volume of the default medium as ephemeral storage.
			byHand := v.EmptyDir.SizeLimit != nil || p.limitsStorage()
			found(seen{at: p.at("volumes").index(i).child("emptyDir", "medium"), what: fmt.Sprintf("volume %s is a folder on the disk, not in memory", v.Name), byHand: byHand})
		}
	}
}

// limitsStorage reports whether a container has a limit of ephemeral storage.
func (p *pods) limitsStorage() bool {
	return slices.ContainsFunc(p.containers(), func(c container) bool {
		_, limited := c.Resources.Limits[corev1.ResourceEphemeralStorage]
		return limited
	})
}

func hugePages(p *pods, found report) {
	for i, v := range p.spec.Volumes {
		if v.EmptyDir != nil && strings.HasPrefix(string(v.EmptyDir.Medium), string(corev1.StorageMediumHugePages)) {
			found(seen{at: p.at("volumes").index(i).child("emptyDir", "medium"), what: "Windows nodes have no huge pages: the volume is not mounted"})
		}
	}
	for _, c := range p.containers() {
		for _, list := range []struct {
			name string
			all  corev1.ResourceList
		}{{"requests", c.Resources.Requests}, {"limits", c.Resources.Limits}} {
			for name := range list.all {
				if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
					found(seen{at: c.path.child("resources", list.name, string(name)), what: "Windows nodes have no huge pages: the pods are not scheduled"})
				}
			}
		}
	}
}

func volumeKinds(p *pods, found report) {
	for i, v := range p.spec.Volumes {
		for kind, is := range map[string]bool{"nfs": v.NFS != nil, "iscsi": v.ISCSI != nil, "rbd": v.RBD != nil, "cephfs": v.CephFS != nil,
			"fc": v.FC != nil, "glusterfs": v.Glusterfs != nil, "image": v.Image != nil} {
			if is {
				found(seen{at: p.at("volumes").index(i).child(kind), what: fmt.Sprintf("volume %s is not mounted: Windows has no volumes of type %s", v.Name, kind)})
			}
		}
	}
}

func fileSystems(p *pods, found report) {
	for i, v := range p.spec.Volumes {
		all := map[string]string{}
		if v.CSI != nil && v.CSI.FSType != nil {
			all["csi"] = *v.CSI.FSType
		}
		if v.AzureDisk != nil && v.AzureDisk.FSType != nil {
			all["azureDisk"] = *v.AzureDisk.FSType
		}
		if v.AWSElasticBlockStore != nil {
			all["awsElasticBlockStore"] = v.AWSElasticBlockStore.FSType
		}
		if v.GCEPersistentDisk != nil {
			all["gcePersistentDisk"] = v.GCEPersistentDisk.FSType
		}
		for kind, fs := range all {
			if slices.Contains([]string{"ext2", "ext3", "ext4", "xfs", "btrfs"}, strings.ToLower(fs)) {
				found(seen{at: p.at("volumes").index(i).child(kind, "fsType"), what: fmt.Sprintf("Windows cannot mount volume %s: it has no file system %s", v.Name, fs)})
			}
		}
	}
}

// unixFolders are folders that Linux has, and no program makes on Windows.
func unixFolders() []string {
	return []string{"/etc", "/proc", "/sys", "/dev", "/lib", "/usr", "/run", "/var/run", "/boot", "/home", "/root", "/mnt", "/media", "/cgroup"}
}

func unixHostPaths(p *pods, found report) {
	for i, v := range p.spec.Volumes {
		if v.HostPath == nil {
			continue
		}
		is := strings.TrimRight(v.HostPath.Path, "/")
		if slices.ContainsFunc(unixFolders(), func(folder string) bool { return is == folder || strings.HasPrefix(is, folder+"/") }) || v.HostPath.Path == "/" {
			found(seen{at: p.at("volumes").index(i).child("hostPath", "path"), what: fmt.Sprintf(`on Windows, %s is the folder C:%s`, v.HostPath.Path,
				strings.ReplaceAll(v.HostPath.Path, "/", `\`))})
		}
	}
}

func hostPathTypes(p *pods, found report) {
	for i, v := range p.spec.Volumes {
		if v.HostPath == nil || v.HostPath.Type == nil || *v.HostPath.Type == "" {
			continue
		}
		at := p.at("volumes").index(i).child("hostPath", "type")
		switch kind := *v.HostPath.Type; {
		case isPipe(v.HostPath.Path):
			found(seen{at: at, what: fmt.Sprintf("volume %s is a named pipe, and kubelet cannot check that it is of type %s", v.Name, kind)})
		case kind == corev1.HostPathCharDev || kind == corev1.HostPathBlockDev:
			found(seen{at: at, what: fmt.Sprintf("volume %s is not mounted: Windows has no files of type %s", v.Name, kind)})
		}
	}
}

func fileModes(p *pods, found report) {
	for i, v := range p.spec.Volumes {
		if v.Secret != nil && v.Secret.DefaultMode != nil && *v.Secret.DefaultMode != corev1.SecretVolumeSourceDefaultMode {
			found(seen{at: p.at("volumes").index(i).child("secret", "defaultMode"), what: fmt.Sprintf("the mode of the files of volume %s has no effect on Windows", v.Name)})
		}
	}
}

package criserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Workload has the running pods and the images on the machine.
type Workload struct {
	Pods   []Pod
	Images []Image
}

// Pod is a pod sandbox with its containers.
type Pod struct {
	ID, Name, Namespace string
	Created             time.Time
	// IP and NetworkNamespace belong to a pod with its own network.
	IP, NetworkNamespace string
	Containers           []Container
	PID                  uint32 // PID of the pod sandbox's own process; 0: the sandbox has none
}

// Container is a container that runs without end.
type Container struct {
	ID, Name, Image string
	Cores           float64 // number of cores that the container uses
	Memory          uint64  // bytes
	PID             uint32  // PID of the container's first process; 0: the container has none
	// Maximum is the largest share of the node's cores that the container may use, in hundredths of
	// a percent, as the kubelet sets it; 0: all cores.
	Maximum int64
}

// Image is an image on the machine.
type Image struct {
	ID, Tag   string
	Size      uint64
	OS        string // default windows
	OSVersion string // such as 10.0.20348.2849; empty: the image has no version of its OS
	Digest    string // name@sha256:…; empty: this server did not pull the image
}

// Example returns a small workload on a Windows Server 2022. It has the requested number of pods,
// and at least one: the first uses a fifth of a core, and the others use nearly nothing. It has
// images for this Windows version and for others.
func Example(started time.Time, pods int) Workload {
	w := Workload{
		Images: []Image{
			{ID: id("pause"), Tag: "registry.k8s.io/pause:3.8", Size: 156_932_300, OSVersion: "10.0.20348.1006"},
			{ID: id("nano2022"), Tag: "mcr.microsoft.com/windows/nanoserver:ltsc2022", Size: 120_543_161,
				OSVersion: "10.0.20348.2849"},
			{ID: id("nano2019"), Tag: "mcr.microsoft.com/windows/nanoserver:ltsc2019", Size: 102_761_940,
				OSVersion: "10.0.17763.6293"},
			{ID: id("nano2025"), Tag: "mcr.microsoft.com/windows/nanoserver:ltsc2025", Size: 198_340_215,
				OSVersion: "10.0.26100.1742"},
			{ID: id("tools"), Tag: "example.com/tools:dev", Size: 4_210_688},
		},
	}
	for i := range max(1, pods) {
		w.Pods = append(w.Pods, examplePod(i, started))
	}
	return w
}

// examplePod returns the pod number i. The pods are called burner, burner-2, burner-3 and so on,
// and have consecutive addresses.
func examplePod(i int, started time.Time) Pod {
	suffix, cores, namespace := "", 0.2, "5B3E71A0-6C1D-4F0E-9A44-8D1C20F7E3B2"
	if i > 0 {
		suffix, cores = fmt.Sprintf("-%d", i+1), 0.01
		n := strings.ToUpper(id("namespace" + suffix))
		namespace = fmt.Sprintf("%s-%s-%s-%s-%s", n[:8], n[8:12], n[12:16], n[16:20], n[20:32])
	}
	address := 15<<8 + 167 + i
	return Pod{
		ID: id("pod" + suffix), Name: "burner" + suffix, Namespace: "default", Created: started,
		IP: fmt.Sprintf("192.168.%d.%d", address>>8, address&0xff), NetworkNamespace: namespace,
		Containers: []Container{{
			ID: id("container" + suffix), Name: "burn", Image: "mcr.microsoft.com/windows/nanoserver:ltsc2022",
			Cores: cores, Memory: 21 << 20,
		}},
	}
}

// id returns an ID in containerd's form. The same text always has the same ID.
func id(of string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(of))) }

func (p Pod) metadata() *runtimev1.PodSandboxMetadata {
	return &runtimev1.PodSandboxMetadata{Name: p.Name, Namespace: p.Namespace, Uid: "uid-" + p.Name}
}

func (p Pod) sandbox() *runtimev1.PodSandbox {
	return &runtimev1.PodSandbox{
		Id: p.ID, Metadata: p.metadata(), State: runtimev1.PodSandboxState_SANDBOX_READY,
		CreatedAt: p.Created.UnixNano(), Labels: p.labels(""), RuntimeHandler: "runhcs-wcow-process",
	}
}

// labels returns the labels that the kubelet sets.
func (p Pod) labels(container string) map[string]string {
	labels := map[string]string{"io.kubernetes.pod.name": p.Name, "io.kubernetes.pod.namespace": p.Namespace}
	if container != "" {
		labels["io.kubernetes.container.name"] = container
	}
	return labels
}

// container returns the container as the runtime lists it. If the container's image is among the
// given images, the result refers to the image by its ID, as the kubelet does.
func (c Container) container(pod Pod, images []Image) *runtimev1.Container {
	ref := c.Image
	if i := slices.IndexFunc(images, func(image Image) bool { return image.Tag == c.Image }); i >= 0 {
		ref = images[i].image().GetId()
	}
	return &runtimev1.Container{
		Id: c.ID, PodSandboxId: pod.ID, Metadata: &runtimev1.ContainerMetadata{Name: c.Name},
		Image: &runtimev1.ImageSpec{Image: ref}, ImageRef: ref,
		State: runtimev1.ContainerState_CONTAINER_RUNNING, CreatedAt: pod.Created.UnixNano(),
		Labels: pod.labels(c.Name),
	}
}

func (c Container) attributes(pod Pod) *runtimev1.ContainerAttributes {
	return &runtimev1.ContainerAttributes{
		Id: c.ID, Metadata: &runtimev1.ContainerMetadata{Name: c.Name}, Labels: pod.labels(c.Name),
	}
}

// cpuTime returns the processor time used so far, in nanoseconds.
func (c Container) cpuTime(pod Pod, now time.Time) *runtimev1.UInt64Value {
	return &runtimev1.UInt64Value{Value: ticks(uint64(c.Cores * float64(now.Sub(pod.Created))))}
}

func (c Container) nanoCores() *runtimev1.UInt64Value {
	return &runtimev1.UInt64Value{Value: uint64(c.Cores * 1e9)}
}

func (c Container) stats(pod Pod, now time.Time) *runtimev1.ContainerStats {
	return &runtimev1.ContainerStats{
		Attributes: c.attributes(pod),
		Cpu: &runtimev1.CpuUsage{
			Timestamp: now.UnixNano(), UsageCoreNanoSeconds: c.cpuTime(pod, now), UsageNanoCores: c.nanoCores(),
		},
		Memory: &runtimev1.MemoryUsage{Timestamp: now.UnixNano(),
			WorkingSetBytes: &runtimev1.UInt64Value{Value: c.Memory}},
		WritableLayer: &runtimev1.FilesystemUsage{
			Timestamp: now.UnixNano(), UsedBytes: &runtimev1.UInt64Value{Value: 1 << 20},
			InodesUsed: &runtimev1.UInt64Value{},
		},
	}
}

func (p Pod) stats(now time.Time) *runtimev1.PodSandboxStats {
	stats := &runtimev1.WindowsPodSandboxStats{
		Cpu: &runtimev1.WindowsCpuUsage{Timestamp: now.UnixNano(), UsageCoreNanoSeconds: &runtimev1.UInt64Value{},
			UsageNanoCores: &runtimev1.UInt64Value{}},
		Memory: &runtimev1.WindowsMemoryUsage{Timestamp: now.UnixNano(), WorkingSetBytes: &runtimev1.UInt64Value{}},
	}
	for _, c := range p.Containers {
		stats.Cpu.UsageCoreNanoSeconds.Value += c.cpuTime(p, now).Value
		stats.Cpu.UsageNanoCores.Value += c.nanoCores().Value
		stats.Memory.WorkingSetBytes.Value += c.Memory
		stats.Containers = append(stats.Containers, &runtimev1.WindowsContainerStats{
			Attributes: c.attributes(p),
			Cpu: &runtimev1.WindowsCpuUsage{Timestamp: now.UnixNano(), UsageCoreNanoSeconds: c.cpuTime(p, now),
				UsageNanoCores: c.nanoCores()},
			Memory: &runtimev1.WindowsMemoryUsage{Timestamp: now.UnixNano(),
				WorkingSetBytes: &runtimev1.UInt64Value{Value: c.Memory}},
		})
	}
	return &runtimev1.PodSandboxStats{
		Attributes: &runtimev1.PodSandboxAttributes{Id: p.ID, Metadata: p.metadata(), Labels: p.labels("")},
		Windows:    stats,
	}
}

type imageService struct {
	runtimev1.UnimplementedImageServiceServer
	workload Workload
	removed  *Removed
	pulled   *Pulled
	offline  bool
}

func (s *imageService) ListImages(context.Context, *runtimev1.ListImagesRequest) (
	*runtimev1.ListImagesResponse, error) {
	reply := &runtimev1.ListImagesResponse{}
	for _, image := range s.images() {
		reply.Images = append(reply.Images, image.image())
	}
	return reply, nil
}

// ImageFsInfo returns the folder of the images, and its size.
func (s *imageService) ImageFsInfo(context.Context, *runtimev1.ImageFsInfoRequest) (
	*runtimev1.ImageFsInfoResponse, error) {
	var used uint64
	for _, image := range s.images() {
		used += image.image().Size
	}
	return &runtimev1.ImageFsInfoResponse{ImageFilesystems: []*runtimev1.FilesystemUsage{{
		Timestamp: time.Now().UnixNano(), FsId: &runtimev1.FilesystemIdentifier{
			Mountpoint: `C:\ProgramData\containerd\root\io.containerd.snapshotter.v1.windows`},
		UsedBytes: &runtimev1.UInt64Value{Value: used}, InodesUsed: &runtimev1.UInt64Value{},
	}}}, nil
}

// ImageStatus returns an empty reply if there is no such image, as containerd does.
func (s *imageService) ImageStatus(_ context.Context, request *runtimev1.ImageStatusRequest) (
	*runtimev1.ImageStatusResponse, error) {
	wanted := request.GetImage().GetImage()
	images := s.images()
	i := slices.IndexFunc(images, func(image Image) bool { return wanted == image.Tag || wanted == image.image().Id })
	if i < 0 {
		return &runtimev1.ImageStatusResponse{}, nil
	}
	image := images[i]
	reply := &runtimev1.ImageStatusResponse{Image: image.image()}
	if request.GetVerbose() {
		info, err := json.Marshal(map[string]any{"chainID": reply.Image.Id, "imageSpec": image.spec()})
		if err != nil {
			return nil, err
		}
		reply.Info = map[string]string{"info": string(info)}
	}
	return reply, nil
}

func (i Image) image() *runtimev1.Image {
	image := &runtimev1.Image{Id: "sha256:" + i.ID, RepoTags: []string{i.Tag}, Size: i.Size}
	if i.Digest != "" {
		image.RepoDigests = []string{i.Digest}
	}
	return image
}

// spec returns the part of the OCI image configuration that swdt reads.
func (i Image) spec() map[string]string {
	spec := map[string]string{"architecture": "amd64", "os": cmp.Or(i.OS, "windows")}
	if i.OSVersion != "" {
		spec["os.version"] = i.OSVersion
	}
	return spec
}

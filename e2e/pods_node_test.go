//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// podNode is a Wine node with an unmodified containerd. This containerd runs pods with a shim, a
// snapshotter and a network plugin of the lab, and with images from a registry on this machine.
type podNode struct {
	sandboxInfo
	config   string // node file
	network  string // configuration of the pod network; "": networkConfig
	registry string
	runtime  runtimev1.RuntimeServiceClient
	images   runtimev1.ImageServiceClient
}

const labSnapshotter = `C:\lab\lab-snapshotter.exe`

func newPodNode(t *testing.T, version string) podNode {
	t.Helper()
	provisioner := containerdProvisioner(t, version)
	n := podNode{sandboxInfo: wineSandbox(t), registry: registry(t)}
	n.config = nodeFile(t, credentialsOf(t, n.sandboxInfo), provisioner)
	ok(t, "push", "-c", n.config, "--accept-new-host-key")
	n.installLab(t)
	ok(t, "cp", "-c", n.config, textFile(t, containerdConfig(version, n.registry)),
		`node:C:\Program Files\containerd\config.toml`)
	n.exec(t, containerdExe, "--register-service", "--log-file", `C:\containerd.log`)
	n.exec(t, "net", "start", "containerd")
	t.Cleanup(func() {
		if t.Failed() {
			log, err := os.ReadFile(filepath.Join(n.Prefix, "drive_c/containerd.log"))
			t.Logf("containerd's log:\n%s%v", log, err)
		}
	})
	conn := startProxy(t, n.config).connect(t)
	n.connect(conn)
	return n
}

// installLab installs the programs with which containerd runs pods, and starts the service of the
// snapshotter.
func (n podNode) installLab(t testing.TB) {
	t.Helper()
	for from, to := range map[string]string{
		lab(t, "pods/containerd-shim-lab-v1.exe"):     `C:\Program Files\containerd\bin\containerd-shim-lab-v1.exe`,
		lab(t, "pods/lab-snapshotter.exe"):            labSnapshotter,
		lab(t, "pods/lab-network.exe"):                `C:\lab\cni\lab-network.exe`,
		textFile(t, cmp.Or(n.network, networkConfig)): `C:\lab\net.d\10-lab.conflist`,
	} {
		ok(t, "cp", "-c", n.config, from, "node:"+to)
	}
	n.exec(t, labSnapshotter, "--register")
	n.exec(t, "net", "start", "lab-snapshotter")
}

func (n *podNode) connect(conn *grpc.ClientConn) {
	n.runtime, n.images = runtimev1.NewRuntimeServiceClient(conn), runtimev1.NewImageServiceClient(conn)
}

func (n podNode) exec(t testing.TB, command ...string) result {
	t.Helper()
	return ok(t, append([]string{"exec", "-c", n.config, "--"}, command...)...)
}

// registry serves the lab's images until the test ends, and returns the registry's address. more are
// further images, as NAME[:TAG]=PROGRAM[,ARGUMENT…].
func registry(t testing.TB, more ...string) string {
	t.Helper()
	burn := lab(t, "pods/burn.exe")
	images := append([]string{"burn=" + burn, "pause=" + burn + ",--cores,0"}, more...)
	cmd := exec.Command(lab(t, "linux/image"), images...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the registry: %v", err)
		}
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the registry says no address: %v", err)
	}
	return strings.TrimSpace(address)
}

func textFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const networkConfig = `{"cniVersion": "0.3.1", "name": "lab", "plugins": [{"type": "lab-network"}]}`

// containerdConfig returns a configuration for a version of containerd that names the lab's shim,
// snapshotter and differ. containerd 1.6 supports no proxy differs, so it uses its own differ
// (walking), which unpacks a layer into a folder that nothing uses.
func containerdConfig(version, registry string) string {
	const snapshotter = `
[proxy_plugins.lab]
  type = "snapshot"
  address = '\\.\pipe\lab-snapshotter'
`
	const both = snapshotter + `
[proxy_plugins.lab-diff]
  type = "diff"
  address = '\\.\pipe\lab-snapshotter'
`
	if strings.HasPrefix(version, "2.") {
		return fmt.Sprintf(`version = 3
root = 'C:\ProgramData\containerd\root'
state = 'C:\ProgramData\containerd\state'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "lab"
  use_local_image_pull = true
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "%s/pause:1"
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['C:\lab\cni']
  conf_dir = 'C:\lab\net.d'
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = "lab"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.lab]
    runtime_type = "io.containerd.lab.v1"
[plugins.'io.containerd.service.v1.diff-service']
  default = ["lab-diff"]
`, registry) + both
	}
	differ, plugins := "lab-diff", both
	if strings.HasPrefix(version, "1.6.") {
		differ, plugins = "walking", snapshotter
	}
	return fmt.Sprintf(`version = 2
root = 'C:\ProgramData\containerd\root'
state = 'C:\ProgramData\containerd\state'
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%s/pause:1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = 'C:\lab\cni'
    conf_dir = 'C:\lab\net.d'
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "lab"
    default_runtime_name = "lab"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.lab]
      runtime_type = "io.containerd.lab.v1"
[plugins."io.containerd.service.v1.diff-service"]
  default = ["%s"]
`, registry, differ) + plugins
}

// pod is a pod with one container.
type pod struct {
	name, sandbox, container string
	logs                     string // folder with the container's log on the node
}

// runPod runs a pod with a container of the image burn and these arguments.
func (n podNode) runPod(t *testing.T, name string, hostProcess bool, args ...string) pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	labels := map[string]string{
		"io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": name,
		"io.kubernetes.pod.uid": name, "io.kubernetes.container.name": "burn",
	}
	p := pod{name: name, logs: `C:\var\log\pods\` + name}
	config := &runtimev1.PodSandboxConfig{
		Metadata: &runtimev1.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		Hostname: name, Labels: labels,
		LogDirectory: p.logs,
		Windows: &runtimev1.WindowsPodSandboxConfig{
			SecurityContext: &runtimev1.WindowsSandboxSecurityContext{HostProcess: hostProcess},
		},
	}
	// Make the folder of the container's log, as the kubelet does.
	if err := os.MkdirAll(filepath.Join(n.Prefix, "drive_c/var/log/pods", name), 0o755); err != nil {
		t.Fatal(err)
	}
	sandbox, err := n.runtime.RunPodSandbox(ctx, &runtimev1.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatalf("run pod %s: %v", name, err)
	}
	image := &runtimev1.ImageSpec{Image: n.registry + "/burn:1"}
	if _, err := n.images.PullImage(ctx, &runtimev1.PullImageRequest{Image: image}); err != nil {
		t.Fatalf("pull %s: %v", image.Image, err)
	}
	created, err := n.runtime.CreateContainer(ctx, &runtimev1.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: config,
		Config: &runtimev1.ContainerConfig{
			Metadata: &runtimev1.ContainerMetadata{Name: "burn"}, Image: image, Args: args, Labels: labels,
			LogPath: "burn.log",
			Windows: &runtimev1.WindowsContainerConfig{
				SecurityContext: &runtimev1.WindowsContainerSecurityContext{HostProcess: hostProcess},
			},
		},
	})
	if err != nil {
		t.Fatalf("create container of %s: %v", name, err)
	}
	if _, err := n.runtime.StartContainer(ctx,
		&runtimev1.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		t.Fatalf("start container of %s: %v", name, err)
	}
	p.sandbox, p.container = sandbox.PodSandboxId, created.ContainerId
	return p
}

// removePod stops and removes the pod, and checks that nothing of it is left.
func (n podNode) removePod(t *testing.T, p pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	if _, err := n.runtime.StopContainer(ctx, &runtimev1.StopContainerRequest{ContainerId: p.container,
		Timeout: 5}); err != nil {
		t.Errorf("stop container of %s: %v", p.name, err)
	}
	if _, err := n.runtime.RemoveContainer(ctx,
		&runtimev1.RemoveContainerRequest{ContainerId: p.container}); err != nil {
		t.Errorf("remove container of %s: %v", p.name, err)
	}
	if _, err := n.runtime.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		t.Errorf("stop pod %s: %v", p.name, err)
	}
	if _, err := n.runtime.RemovePodSandbox(ctx,
		&runtimev1.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		t.Errorf("remove pod %s: %v", p.name, err)
	}
	pods, err := n.runtime.ListPodSandbox(ctx,
		&runtimev1.ListPodSandboxRequest{Filter: &runtimev1.PodSandboxFilter{Id: p.sandbox}})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("after its removal: %v, %v", pods, err)
	}
	if left := processesNamed(t, n.Prefix, "containerd-shim-lab-v1.exe", p.sandbox); len(left) > 0 {
		t.Errorf("the shim of pod %s is left: %v", p.name, left)
	}
}

// awaitRunning waits until containerd answers and reports the pod's container as
// running.
func (n podNode) awaitRunning(t *testing.T, p pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	eventually(t, "the container of "+p.name+" runs", func() error {
		status, err := n.runtime.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: p.container},
			grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		if state := status.Status.State; state != runtimev1.ContainerState_CONTAINER_RUNNING {
			return errors.New(state.String())
		}
		return nil
	})
}

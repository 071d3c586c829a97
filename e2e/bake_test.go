//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/testing/vmguest"
)

// bakeLimit bounds a bake: a boot without acceleration, and the work on the node.
const bakeLimit = bootLimit + 5*time.Minute

// bakedManifest has the promised fields of an image's manifest.
type bakedManifest struct {
	Node, Kubernetes string
	Image, Base      struct{ File, Format, SHA256 string }
	Binaries         []struct{ Path, SHA256, Version string }
	Images           []struct{ Name, Digest string }
}

// TestAnImageFromBakeToAVM bakes an image with real QEMU, and makes a VM from the image. The VM has the
// programs and the container image of the image, its own name, and no remains of the build.
func TestAnImageFromBakeToAVM(t *testing.T) {
	base := vmguest.Disk(t)
	home := newVMHome(t)
	image := filepath.Join(home.folder, "node.qcow2")
	file := home.bakeFile(t, base)

	r := swdtWithin(t, bakeLimit+vmOverhead, "vm", "image", "bake", "--out", image, "--timeout", bakeLimit.String(), "-c", file,
		"-o", "json")
	if r.code != 0 {
		t.Fatalf("bake: exit code %d", r.code)
	}
	if left := decoded[vmReports](t, ok(t, "vm", "list", "-o", "json")); len(left.VMs) != 0 {
		t.Errorf("VMs are left: %+v", left.VMs)
	}
	m := home.wantManifest(t, image, base)
	wantStandalone(t, image)

	clone := home.cloneFile(t, image)
	created := oneVM(t, ok(t, "vm", "create", "-c", clone, "-o", "json"))
	home.writeCD(t, vmguest.Settings{AuthorizedKeys: []string{readText(t, created.Key+".pub")}})
	wantVM(t, oneVM(t, home.start(t, clone)), "changed", "running")
	is := kubeletOf(t, clone)
	want := kubelet{
		Version: "v1.29.0", SHA256: m.sha256Of(t, `C:\k\kubelet.exe`), Drift: "none", State: is.State, PID: is.PID,
	}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("the kubelet of a machine of the image (-want +got):\n%s", diff)
	}
	if name := strings.TrimSpace(ok(t, "exec", "-c", clone, "hostname.exe").stdout); !strings.HasPrefix(name, "WIN-") {
		t.Errorf("the machine is called %q, want a name of its own", name)
	}
	for _, left := range []string{`C:\ProgramData\swdt\join.json`, `C:\etc\kubernetes\kubelet.conf`} {
		if r := swdt(t, "exec", "-c", clone, "--", "cmd", "/c", "type", left); r.code == 0 {
			t.Errorf("%s is in the image: %v", left, r)
		}
	}
	if images := ok(t, "cri", "images", "-c", clone).stdout; !strings.Contains(images, "registry.k8s.io/pause") {
		t.Errorf("the image of pod sandboxes is missing:\n%s", images)
	}
	home.stop(t, clone)
}

// bakeFile writes the node file of the image, and the CD of the temporary VM that makes the image.
func (h vmHome) bakeFile(t *testing.T, base string) string {
	t.Helper()
	signer, key, err := sandbox.NewKey("build")
	if err != nil {
		t.Fatal(err)
	}
	h.writeCD(t, vmguest.Settings{
		Hostname: "base", Preset: "minimal", Restart: "windows",
		AuthorizedKeys: []string{string(ssh.MarshalAuthorizedKey(signer.PublicKey()))},
	})
	if err := os.WriteFile(filepath.Join(h.folder, "build_key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	return h.machineFile(t, "base.yaml", base, "    privateKey: ./build_key\n", fmt.Sprintf(`  kubernetes:
    version: 1.29.0
    containerd:
      version: 1.7.12
      source: %s
    kubelet:
      source: %s
      kubeadmSource: %s
      logRunnerSource: %s
`, lab(t, "containerd-v1.7.12.exe"), lab(t, "kubelet-v1.29.0.exe"), lab(t, "kubeadm-v1.29.0.exe"),
		lab(t, "kube-log-runner-v1.29.0.exe")))
}

// cloneFile writes the node file of a VM that is made from the image.
func (h vmHome) cloneFile(t *testing.T, image string) string {
	t.Helper()
	return h.machineFile(t, "clone.yaml", image, "", "  kubernetes:\n    provisioners:\n"+
		provisioner("kubelet", "1.29.0", lab(t, "kubelet-v1.29.0.exe"), kubeletExe, ""))
}

func (h vmHome) machineFile(t *testing.T, name, image, credentials, kubernetes string) string {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: %s
spec:
  credentials:
    username: %s
%s  machine:
    driver: qemu
    image:
      disk: %q
      drivers: %q # the guest's configuration
    cpus: 1
    memory: 768Mi
    disk: 2Gi
    diskBus: virtio
    accelerator: tcg
    network:
      adapter: virtio
%s`, vmName, vmguest.User, credentials, image, h.cd(), kubernetes)
	file := filepath.Join(h.folder, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// wantManifest checks that the manifest describes the image.
func (h vmHome) wantManifest(t *testing.T, image, base string) bakedManifest {
	t.Helper()
	text := readText(t, image+".manifest.json")
	if strings.Contains(text, h.folder) {
		t.Errorf("the manifest has a path of this machine:\n%s", text)
	}
	var m bakedManifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	got := []string{m.Node, m.Kubernetes, m.Image.SHA256, m.Image.Format, m.Base.SHA256, m.sha256Of(t, `C:\k\kubelet.exe`)}
	want := []string{vmName, "1.29.0", hashFile(t, image), "qcow2", hashFile(t, base),
		hashFile(t, lab(t, "kubelet-v1.29.0.exe"))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if len(m.Images) != 1 || !strings.HasPrefix(m.Images[0].Digest, "sha256:") {
		t.Errorf("images %+v, want that of pod sandboxes with its digest", m.Images)
	}
	return m
}

func (m bakedManifest) sha256Of(t *testing.T, path string) string {
	t.Helper()
	for _, b := range m.Binaries {
		if b.Path == path {
			return b.SHA256
		}
	}
	t.Errorf("the manifest has no %s: %+v", path, m.Binaries)
	return ""
}

// wantStandalone checks that an image is sound and needs no other file.
func wantStandalone(t *testing.T, image string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "check", image).CombinedOutput(); err != nil {
		t.Errorf("qemu-img check: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "qemu-img", "info", "--output=json", image).Output()
	if err != nil || strings.Contains(string(out), "backing") {
		t.Errorf("qemu-img info: %v\n%s", err, out)
	}
}

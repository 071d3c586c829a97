package bake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/join/bake"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestBakedImage(t *testing.T) {
	k := newKitchen(t)
	k.o.Images = []string{"mcr.microsoft.com/windows/nanoserver:ltsc2022"}
	base, err := localfile.Hash(t.Context(), k.doc.Node.Spec.Machine.Image.Disk)
	if err != nil {
		t.Fatal(err)
	}
	report, err := k.bake()
	if err != nil {
		t.Fatalf("%v\n%+v", err, report.Steps)
	}
	if diff := cmp.Diff([]string{"node.qcow2", "node.qcow2.manifest.json"}, k.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if left := k.machines(); len(left) > 0 {
		t.Errorf("VMs are left: %v", left)
	}
	image, err := os.ReadFile(k.o.File)
	if err != nil {
		t.Fatal(err)
	}
	wantManifest(t, k, base)
	wantNoTraces(t, image)
	wantNode(t, image)
}

// swdt's files are removed, and sysprep runs, through a default shell that takes neither backslashes nor /c as they are.
func TestBakedThroughBash(t *testing.T) {
	k := newKitchen(t)
	k.driver.shell, k.driver.profile = "bash", "echo Welcome\ncd C:/Windows"
	report, err := k.bake()
	if err != nil {
		t.Fatalf("%v\n%+v", err, report.Steps)
	}
	image, err := os.ReadFile(k.o.File)
	if err != nil {
		t.Fatal(err)
	}
	wantNoTraces(t, image)
}

// wantManifest checks that the manifest describes the image that is there.
func wantManifest(t *testing.T, k *kitchen, base string) {
	t.Helper()
	text, err := os.ReadFile(k.o.File + ".manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{secret, k.folder, "bake-win-1"} {
		if bytes.Contains(text, []byte(private)) {
			t.Errorf("the manifest has %q:\n%s", private, text)
		}
	}
	var m bake.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	hash, err := localfile.Hash(t.Context(), k.o.File)
	if err != nil {
		t.Fatal(err)
	}
	binaries := map[string]string{}
	for _, b := range m.Binaries {
		if len(b.SHA256) != 64 {
			t.Errorf("%+v has no hash", b)
		}
		binaries[b.Path] = b.Version
	}
	wantBinaries := map[string]string{
		`C:\k\kubelet.exe`: "v1.36.3", `C:\k\kubeadm.exe`: "", `C:\k\kube-log-runner.exe`: "",
		`C:\Program Files\containerd\bin\containerd.exe`: "v1.7.12",
	}
	if diff := cmp.Diff(wantBinaries, binaries); diff != "" {
		t.Errorf("binaries (-want +got):\n%s", diff)
	}
	got := []any{m.Version, m.Node, m.Swdt, m.Image.SHA256, m.Image.Format, m.Base.SHA256, m.Base.File, m.Setup,
		m.Windows.Product}
	want := []any{1, "win-1", "v0-test", hash, vm.QCOW2, base, "base.qcow2", []string{"environment"},
		"Windows Server 2022 Datacenter"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	var images []string
	for _, image := range m.Images {
		images = append(images, image.Name)
		if !strings.HasPrefix(image.Digest, "sha256:") {
			t.Errorf("%+v has no digest", image)
		}
	}
	if diff := cmp.Diff([]string{"registry.k8s.io/pause:3.8", "mcr.microsoft.com/windows/nanoserver:ltsc2022"},
		images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

// wantNoTraces checks that nothing of the build is anywhere in the image: in no file, registry
// value or event.
func wantNoTraces(t *testing.T, image []byte) {
	t.Helper()
	for _, private := range []string{secret, "ssh-ed25519", "OPENSSH PRIVATE KEY", "swdt-agent", "bake-win-1"} {
		if at := bytes.Index(image, []byte(private)); at >= 0 {
			around := image[max(0, at-200):min(len(image), at+100)]
			t.Errorf("the image has %q: %q", private, around)
		}
	}
	saved, err := simulated.ReadSaved(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	if !saved.Generalized() {
		t.Error("the image is not generalised")
	}
	m := simulated.New(simulated.Options{Saved: saved})
	defer m.Close()
	for _, path := range append(planted(), `C:\ProgramData\swdt`) {
		_, err := m.Process("test").Files.Stat(path)
		if path == `C:\var\log\kubelet\kubelet.log` {
			continue // kubelet has written a new one since the machine booted
		}
		if !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("%s is in the image (%v)", path, err)
		}
	}
}

// wantNode checks that machines of the image are prepared, and differ from each other.
func wantNode(t *testing.T, image []byte) {
	t.Helper()
	names, identities := map[string]bool{}, map[string]bool{}
	for range 2 {
		saved, err := simulated.ReadSaved(bytes.NewReader(image))
		if err != nil {
			t.Fatal(err)
		}
		m := simulated.New(simulated.Options{Saved: saved})
		facts, err := m.Process("test").Machine.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names[facts.Hostname], identities[m.MachineGUID()] = true, true
		services := m.Process("test").Services
		status, err := services.Status(t.Context(), "containerd")
		if err != nil || status.State != platform.Running {
			t.Errorf("containerd: %+v, %v", status, err)
		}
		kubelet, err := services.Config(t.Context(), "kubelet")
		if err != nil || strings.Contains(kubelet.CommandLine, "hostname-override") {
			t.Errorf("kubelet: %+v, %v", kubelet, err)
		}
		m.Close()
	}
	if len(names) != 2 || names["BASE"] {
		t.Errorf("two machines of the image have the names %v, want two of their own", names)
	}
	if len(identities) != 2 || identities[""] {
		t.Errorf("two machines of the image have the identities %v, want two", identities)
	}
}

// Keys stay in the image if the user asks for it.
func TestKeysThatAreWanted(t *testing.T) {
	k := newKitchen(t)
	k.o.KeepAuthorizedKeys, k.o.KeepHostKeys, k.o.NoPull = true, true, true
	if _, err := k.bake(); err != nil {
		t.Fatal(err)
	}
	m := k.image(t)
	for _, name := range []string{"ssh_host_ed25519_key", "administrators_authorized_keys"} {
		if _, err := m.ReadFile(`C:\ProgramData\ssh\` + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Keys of spec.setup stay, and no others.
func TestKeysOfTheNodeFile(t *testing.T) {
	k := newKitchen(t)
	key, _, err := sandbox.NewKey("wanted")
	if err != nil {
		t.Fatal(err)
	}
	wanted := string(ssh.MarshalAuthorizedKey(key.PublicKey()))
	k.doc.Node.Spec.Setup.OpenSSH = &v1alpha1.OpenSSH{AuthorizedKeys: []string{strings.TrimSpace(wanted)}}
	k.o.NoPull = true
	if _, err := k.bake(); err != nil {
		t.Fatal(err)
	}
	m := k.image(t)
	text, err := m.ReadFile(`C:\ProgramData\ssh\administrators_authorized_keys`)
	if err != nil || strings.TrimSpace(string(text)) != strings.TrimSpace(wanted) {
		t.Errorf("%q (%v), want %q", text, err, wanted)
	}
}

// image returns a machine of the image.
func (k *kitchen) image(t *testing.T) *simulated.Machine {
	t.Helper()
	image, err := os.ReadFile(k.o.File)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := simulated.ReadSaved(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	m := simulated.New(simulated.Options{Saved: saved})
	t.Cleanup(m.Close)
	return m
}

// A link in the place of the image leads nowhere, also if the image may be replaced.
func TestALinkInPlaceOfTheImage(t *testing.T) {
	k := newKitchen(t)
	private := k.write("private", "private")
	if err := os.Symlink(private, k.o.File); err != nil {
		t.Skip(err)
	}
	k.o.Replace = true
	_, err := k.bake()
	var refused *bake.OptionError
	if !errors.As(err, &refused) {
		t.Errorf("error %v, want an OptionError", err)
	}
	if text, err := os.ReadFile(private); err != nil || string(text) != "private" {
		t.Errorf("the other file is %q, %v", text, err)
	}
}

// Whatever fails, neither a VM nor a file is left, and an image that was there before stays.
func TestFailuresLeaveNothing(t *testing.T) {
	for _, operation := range []string{"create", "start", "export"} {
		t.Run(operation, func(t *testing.T) {
			k := newKitchen(t)
			k.write("node.qcow2", "an earlier image")
			k.o.Replace = true
			broken := errors.New("the VM is broken")
			k.driver.Fault = func(now string, _ vm.Machine) error {
				if now == operation {
					return broken
				}
				return nil
			}
			_, err := k.bake()
			k.wantNothing(t, err, broken)
		})
	}
	t.Run("an image that is not there", func(t *testing.T) {
		k := newKitchen(t)
		k.write("node.qcow2", "an earlier image")
		k.o.Replace, k.o.Images = true, []string{"registry.example/missing:1"}
		report, err := k.bake()
		k.wantNothing(t, err, nil)
		i := slices.IndexFunc(report.Steps, func(s plan.StepResult) bool { return s.State == plan.Failed })
		if i < 0 || i+1 == len(report.Steps) {
			t.Fatalf("steps %+v: want one that failed, and others after it", report.Steps)
		}
		if got := report.Steps[i].Name; got != "images" {
			t.Errorf("step %s failed, want images", got)
		}
		if got := report.Steps[i+1].State; got != plan.Skipped {
			t.Errorf("the step after it is %s, want %s", got, plan.Skipped)
		}
	})
}

func (k *kitchen) wantNothing(t *testing.T, err, want error) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	if diff := cmp.Diff([]string{"node.qcow2"}, k.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(k.o.File); err != nil || string(text) != "an earlier image" {
		t.Errorf("the earlier image is %.40q, %v", text, err)
	}
	if left := k.machines(); len(left) > 0 {
		t.Errorf("VMs are left: %v", left)
	}
}

// interrupter ends a run when a step that begins with a text is reported.
type interrupter struct {
	ui.Discard
	at     string
	cancel func()
}

func (i interrupter) Step(format string, args ...any) {
	if len(args) > 2 && args[2] == i.at {
		i.cancel()
	}
}

func TestInterruptedAtEachStep(t *testing.T) {
	probe := newKitchen(t)
	probe.o.DryRun = true
	report, err := probe.bake()
	if err != nil || len(report.Steps) < 7 {
		t.Fatalf("%v, %+v", err, report.Steps)
	}
	for _, step := range report.Steps {
		t.Run(step.Name, func(t *testing.T) {
			k := newKitchen(t)
			k.write("node.qcow2", "an earlier image")
			k.o.Replace = true
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := bake.Run(ctx, k.doc, k.o, interrupter{at: step.Name, cancel: cancel})
			k.wantNothing(t, err, nil)
		})
	}
}

func TestKeepAfterAFailure(t *testing.T) {
	k := newKitchen(t)
	k.o.KeepVM, k.o.Images = true, []string{"registry.example/missing:1"}
	report, err := k.bake()
	if err == nil || report.Machine == "" {
		t.Errorf("error %v, and VM %q was kept; want an error and a VM", err, report.Machine)
	}
	if diff := cmp.Diff([]string{report.Machine}, k.machines()); diff != "" {
		t.Errorf("the VMs (-want +got):\n%s", diff)
	}
	if files := k.files(); len(files) > 0 {
		t.Errorf("files are left: %v", files)
	}
}

func TestDryRunMakesNothing(t *testing.T) {
	k := newKitchen(t)
	k.o.DryRun = true
	report, err := k.bake()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, step := range report.Steps {
		names = append(names, step.Name)
	}
	want := []string{"machine", "start", "setup", "kubernetes", "images", "manifest", "generalize", "write"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if files, vms := k.files(), k.machines(); len(files)+len(vms) > 0 {
		t.Errorf("there are %v, %v", files, vms)
	}
}

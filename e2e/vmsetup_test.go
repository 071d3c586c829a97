//go:build e2e

package e2e

import (
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/testing/vmguest"
	"github.com/swdt-dev/swdt/internal/testing/winsetup"
)

// imageBuilds has the promised fields of `swdt vm image build -o json`.
type imageBuilds struct {
	Builds []struct {
		Name, Result, Error string
		Image               struct{ Key, State, Edition, Folder string }
	}
}

// installLimit bounds an installation by the imitated Setup, without acceleration.
const installLimit = 9 * time.Minute

// TestAnImageFromSetupToANode builds a golden image with real QEMU: an imitation of Windows Setup
// follows swdt's answer file. A VM of the image then becomes a node.
func TestAnImageFromSetupToANode(t *testing.T) {
	iso := vmguest.SetupISO(t, winsetup.Success)
	home := newVMHome(t)
	file := home.installedNode(t, vmName, iso, false)

	built := swdtWithin(t, installLimit+vmOverhead, home.build(file)...)
	if built.code != 0 {
		t.Fatalf("the image was not built: %v", built)
	}
	b := decoded[imageBuilds](t, built).Builds
	switch {
	case len(b) != 1:
		t.Fatalf("%d builds, want 1: %+v", len(b), b)
	case b[0].Result != "changed":
		t.Fatalf("the result is %q, want changed: %+v", b[0].Result, b)
	case b[0].Image.State != "ready":
		t.Fatalf("the image is %q, want ready: %+v", b[0].Image.State, b)
	}
	if text := readText(t, filepath.Join(b[0].Image.Folder, "manifest.json")); strings.Contains(text, "assword") {
		t.Errorf("the manifest holds a password: %s", text)
	}
	created := oneVM(t, ok(t, "vm", "create", "-c", file, "-o", "json"))
	wantVM(t, created, "changed", "stopped")
	ofCD := readText(t, created.PasswordFile)
	started := oneVM(t, home.start(t, file))
	wantVM(t, started, "changed", "running")
	wantPassword(t, started, ofCD)
	if r := ok(t, "status", "-c", file); !strings.Contains(r.stdout, "Windows Server") {
		t.Errorf("status: %v", r)
	}
	if r := ok(t, "exec", "-c", file, "hostname.exe"); !strings.EqualFold(strings.TrimSpace(r.stdout), vmName) {
		t.Errorf("hostname %q, want %s", r.stdout, vmName)
	}
	home.stop(t, file)
	wantVM(t, oneVM(t, ok(t, "vm", "delete", "--yes", "-c", file, "-o", "json")), "changed", "absent")
	home.wantNothing(t, started)
	ok(t, "vm", "image", "remove", "--yes", b[0].Image.Key)
}

// wantPassword checks that the guest has the password of the VM's file, which is not the one that was on the CD.
func wantPassword(t *testing.T, vm vmReport, ofCD string) {
	t.Helper()
	for password, works := range map[string]bool{readText(t, vm.PasswordFile): true, ofCD: false} {
		client, err := ssh.Dial("tcp", vm.Address, &ssh.ClientConfig{
			User: vmguest.User, Auth: []ssh.AuthMethod{ssh.Password(strings.TrimSpace(password))},
			HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
		if err == nil {
			client.Close()
		}
		if (err == nil) != works {
			t.Errorf("a login with a password that works (%t): %v", works, err)
		}
	}
}

// TestFailedInstallations checks that each failure of an installation ends with a message that names
// the reason, a remedy, and a picture of the screen. The installations run at the same time, since most
// of them only wait.
func TestFailedInstallations(t *testing.T) {
	tests := []failedInstallation{
		{mode: winsetup.WrongEdition, want: `copies nothing: it waits for an answer.*edition`},
		{mode: winsetup.IgnoreAnswers, want: `copies nothing: it waits for an answer.*answer file`},
		{mode: winsetup.NoDisk, want: `copies nothing: it waits for an answer.*diskBus: sata`},
		{mode: winsetup.Hang, want: `nothing is read from the CDs or written to the disk`},
		{mode: winsetup.RebootLoop, want: `reset 11 times`},
		{mode: winsetup.NoNetwork, online: true, want: `first-boot script failed at openssh: Add-WindowsCapability failed`},
	}
	for i := range tests {
		tests[i].iso = vmguest.SetupISO(t, tests[i].mode)
	}
	home := newVMHome(t)
	cache := cacheHome(t)
	var running sync.WaitGroup
	for i := range tests {
		test := &tests[i]
		file := home.installedNode(t, string(test.mode), test.iso, test.online)
		running.Go(func() { test.r, test.err = execute(t.Context(), cache, home.build(file)...) })
	}
	running.Wait()
	for _, test := range tests {
		t.Run(string(test.mode), func(t *testing.T) { test.check(t) })
	}
	if left := home.processes(t); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	for _, path := range home.files(t, "cache", func(fs.FileMode) bool { return true }) {
		if filepath.Base(path) == "config.iso" {
			t.Errorf("a CD with a password is left: %s", path)
		}
	}
}

// failedInstallation is a build that must fail.
type failedInstallation struct {
	mode   winsetup.Mode
	online bool   // the guest must download OpenSSH
	want   string // a regular expression of the error
	iso    string
	r      result
	err    error
}

func (f failedInstallation) check(t *testing.T) {
	t.Log(f.r)
	if f.err != nil {
		t.Fatal(f.err)
	}
	b := decoded[imageBuilds](t, f.r).Builds
	switch {
	case f.r.code != 1:
		t.Fatalf("exit code %d, want 1: %+v", f.r.code, b)
	case len(b) != 1:
		t.Fatalf("%d builds, want 1: %+v", len(b), b)
	case b[0].Result != "failed":
		t.Fatalf("the result is %q, want failed: %+v", b[0].Result, b)
	}
	if !regexp.MustCompile(`(?s)` + f.want).MatchString(b[0].Error) {
		t.Errorf("%q, want %q", b[0].Error, f.want)
	}
	wantScreen(t, b[0].Error)
	if strings.Contains(b[0].Error, "a key answered the screen") {
		t.Error("swdt pressed a key after Setup had started")
	}
}

// wantScreen checks that an error names a screenshot.
func wantScreen(t *testing.T, text string) {
	t.Helper()
	found := regexp.MustCompile(`the screen is saved as ([^;]+\.png)`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%q names no screenshot", text)
	}
	file, err := os.Open(found[1])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if screen, err := png.Decode(file); err != nil || screen.Bounds().Dx() < 640 {
		t.Errorf("screenshot %s: %v", found[1], err)
	}
}

// build returns the arguments of the command that builds the image of a node file. With them, swdt gives
// up a guest that waits sooner than by default.
func (h vmHome) build(file string) []string {
	return []string{
		"vm", "image", "build", "--accel", "tcg", "--limit", "stall=2m", "--timeout", installLimit.String(),
		"-c", file, "-o", "json",
	}
}

// installedNode writes the node file of a VM that is installed from an ISO.
func (h vmHome) installedNode(t *testing.T, name, iso string, online bool) string {
	t.Helper()
	openSSH := ""
	if !online {
		msi := filepath.Join(h.folder, "OpenSSH.msi")
		if err := os.WriteFile(msi, []byte("an installer"), 0o600); err != nil {
			t.Fatal(err)
		}
		openSSH = fmt.Sprintf("      openSSH: %q\n", msi)
	}
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: %s
spec:
  credentials:
    username: %s
  machine:
    driver: qemu
    image:
      iso: %q
      edition: standard-core
%s    cpus: 1
    memory: 768Mi
    disk: 2Gi
    accelerator: tcg
`, name, vmguest.User, iso, openSSH)
	file := filepath.Join(h.folder, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

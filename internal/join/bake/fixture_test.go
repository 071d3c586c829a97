package bake_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join/bake"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// windowsVM is the simulated driver of VMs whose guests are simulated Windows behind SSH. The
// disk of a VM is the saved state of its Windows.
type windowsVM struct {
	*simulatedvm.Driver
	t              *testing.T
	agent          simulated.Agent
	shell, profile string // of the guests' SSH servers

	mu     sync.Mutex
	guests map[string]*guest // by UUID
}

type guest struct {
	windows *simulated.Machine
	end     func()
}

func (d *windowsVM) Start(ctx context.Context, m vm.Machine) error {
	if err := d.Driver.Start(ctx, m); err != nil {
		return err
	}
	disk, err := simulatedvm.ReadDisk(m)
	if err == nil && disk == "" {
		var base []byte
		base, err = os.ReadFile(m.Image.Base)
		disk = string(base)
	}
	if err != nil {
		return err
	}
	saved, err := simulated.ReadSaved(strings.NewReader(disk))
	if err != nil {
		return err
	}
	g := &guest{}
	var windows *simulated.Machine
	started := make(chan struct{})
	windows = simulated.New(simulated.Options{Saved: saved, Agent: &d.agent, Internet: true, OnShutdown: func() {
		<-started
		var state bytes.Buffer
		if err := errors.Join(windows.Save(&state), simulatedvm.WriteDisk(m, state.String()),
			simulatedvm.Reboot(m)); err != nil {
			d.t.Errorf("save the VM's disk: %v", err)
		}
	}})
	g.windows = windows
	close(started)
	hostKey, err := sandbox.HostKeyOf(windows)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.Network.Forwards[0].HostPort))
	if err != nil {
		return err
	}
	serving, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = sandbox.Serve(serving, listener, sandbox.ServerOptions{Machine: windows, HostKey: hostKey, OwnKeys: true,
			Shell: d.shell, Profile: d.profile})
	}()
	g.end = sync.OnceFunc(func() {
		cancel()
		<-served
		windows.Close()
	})
	d.t.Cleanup(g.end)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guests[m.UUID] = g
	return nil
}

func (d *windowsVM) Kill(ctx context.Context, m vm.Machine) error {
	d.mu.Lock()
	g := d.guests[m.UUID]
	d.mu.Unlock()
	if g != nil {
		g.end()
	}
	return d.Driver.Kill(ctx, m)
}

// programs are artifacts that are made on demand.
type programs struct {
	folder  string
	sources *source.Set
}

func (p *programs) Resolve(ctx context.Context, wish artifact.Wish, r ui.Reporter) (artifact.Set, error) {
	name := string(wish.Component)
	path := filepath.Join(p.folder, name+".exe")
	spec := simulated.BinarySpec{Name: name, Version: "v" + wish.Version, Machine: wish.Arch}
	if err := os.WriteFile(path, simulated.Binary(spec), 0o600); err != nil {
		return artifact.Set{}, err
	}
	binary, err := p.sources.Obtain(ctx, source.Request{URL: path, Executable: true}, r)
	return artifact.Set{Version: wish.Version, Files: []artifact.File{{Name: name + ".exe", Binary: binary}}}, err
}

// kitchen has a base image, and everything that a run needs.
type kitchen struct {
	t      *testing.T
	folder string
	driver *windowsVM
	store  *vm.Store
	doc    config.Document
	o      bake.Options
}

// secret is in everything of the base image that must not be in an image of it.
const secret = "S3CRET-OF-THE-BUILD"

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	return kitchenIn(t, t.TempDir())
}

// kitchenIn returns a kitchen in a folder, in which another process may have baked before.
func kitchenIn(t *testing.T, folder string) *kitchen {
	t.Helper()
	program := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "test"})
	sum := sha256.Sum256(program)
	hash := hex.EncodeToString(sum[:])
	k := &kitchen{t: t, folder: folder, driver: &windowsVM{
		Driver: &simulatedvm.Driver{}, t: t, guests: map[string]*guest{},
		agent: simulated.Agent{Hash: hash, Main: sandbox.AgentMain(hash)},
	}}
	var err error
	if k.store, err = vm.OpenStore(filepath.Join(folder, "machines")); err != nil {
		t.Fatal(err)
	}
	key, private, err := sandbox.NewKey("test")
	if err != nil {
		t.Fatal(err)
	}
	k.write("id", string(private))
	k.writeBase(key.PublicKey())
	k.doc = k.document()
	machines := vm.NewMachines(k.store, "swdt vm image bake", k.driver)
	sources := source.NewSet(source.Options{})
	agent := agentbin.Agent{Hash: hash, Size: int64(len(program)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(program)), nil
	}}
	k.o = bake.Options{
		File: filepath.Join(folder, "node.qcow2"), Machines: machines, Sources: sources, Swdt: "v0-test", Holder: "test",
		Artifacts: &programs{t.TempDir(), sources},
		Connect: func(ctx context.Context, doc config.Document, r ui.Reporter) (*node.Node, error) {
			return node.Connect(ctx, doc, node.Options{
				Agent: agent, Locate: machines.Reach, StateFile: filepath.Join(folder, "state"), HomeDir: folder, Reporter: r,
			})
		},
	}
	return k
}

func (k *kitchen) write(name, text string) string {
	k.t.Helper()
	path := filepath.Join(k.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return path
}

// writeBase writes the base image: a Windows with traces of its installation and of a cluster.
func (k *kitchen) writeBase(key ssh.PublicKey) {
	k.t.Helper()
	m := simulated.New(simulated.Options{Hostname: "BASE", Preset: simulated.Minimal})
	defer m.Close()
	if _, err := sandbox.HostKeyOf(m); err != nil {
		k.t.Fatal(err)
	}
	sandbox.Authorize(m, key)
	for _, path := range planted() {
		m.WriteFile(path, []byte(secret))
	}
	p := m.Process("test")
	for _, name := range []string{"DefaultPassword", "AutoAdminLogon"} {
		if err := p.Registry.Set(`HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon`, platform.RegistryValue{
			Name: name, Type: platform.RegistryString, String: secret,
		}); err != nil {
			k.t.Fatal(err)
		}
	}
	m.LogEvent(simulated.LoggedEvent{Channel: "Security", Provider: "test", ID: 1, Level: 4, Message: secret})
	var state bytes.Buffer
	if err := m.Save(&state); err != nil {
		k.t.Fatal(err)
	}
	k.write("base.qcow2", state.String())
}

// planted returns files of the base image that must not be in an image of it.
func planted() []string {
	return []string{
		`C:\ProgramData\ssh\ssh_host_rsa_key`, `C:\ProgramData\ssh\ssh_known_hosts`,
		`C:\Users\Administrator\.ssh\known_hosts`, `C:\Users\Administrator\.ssh\authorized_keys`,
		`C:\Users\Administrator\AppData\Roaming\Microsoft\Windows\PowerShell\PSReadLine\ConsoleHost_history.txt`,
		`C:\Windows\Panther\unattend.xml`, `C:\Windows\Panther\unattend-original.xml`, `C:\Autounattend.xml`,
		`C:\Windows\System32\Sysprep\unattend.xml`,
		`C:\etc\kubernetes\kubelet.conf`, `C:\etc\kubernetes\bootstrap-kubelet.conf`, `C:\etc\kubernetes\pki\ca.crt`,
		`C:\var\lib\kubelet\pki\kubelet-client-current.pem`, `C:\var\lib\kubelet\config.yaml`,
		`C:\var\log\kubelet\kubelet.log`, `C:\var\log\pods\default_web\0.log`, `C:\ProgramData\swdt\join.yaml`,
	}
}

func (k *kitchen) document() config.Document {
	doc := config.Document{File: filepath.Join(k.folder, "node.yaml"), Node: v1alpha1.Node{
		Metadata: v1alpha1.Metadata{Name: "win-1"},
	}}
	doc.Node.Spec.Credentials = v1alpha1.Credentials{Username: "Administrator", PrivateKey: filepath.Join(k.folder, "id"),
		Hostname: "192.0.2.1:22"}
	doc.Node.Spec.Machine = &v1alpha1.Machine{
		Driver: simulatedvm.Name, Image: v1alpha1.MachineImage{Disk: filepath.Join(k.folder, "base.qcow2")},
		Network: v1alpha1.MachineNetwork{Ports: []v1alpha1.MachinePort{{Name: "rdp", Host: 3389}}},
	}
	doc.Node.Spec.Setup.Environment = map[string]string{"STAGE": "baked"}
	doc.Node.Spec.Kubernetes.Version = "1.36.3"
	doc.Node.Spec.Kubernetes.Containerd.Version = "1.7.12"
	v1alpha1.SetDefaults(&doc.Node)
	return doc
}

// bake runs with a limit.
func (k *kitchen) bake() (bake.Report, error) {
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	return bake.Run(ctx, k.doc, k.o, ui.Discard{})
}

// files returns the names in the folder of the image, without those that were there before.
func (k *kitchen) files() (names []string) {
	k.t.Helper()
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "machines", "id", "base.qcow2", "state":
		default:
			names = append(names, entry.Name())
		}
	}
	return names
}

func (k *kitchen) machines() (names []string) {
	k.t.Helper()
	found, err := k.store.All()
	if err != nil {
		k.t.Fatal(err)
	}
	for _, one := range found {
		names = append(names, one.Record.Name)
	}
	return names
}

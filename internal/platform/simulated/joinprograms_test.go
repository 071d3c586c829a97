package simulated_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const containerdToml = `C:\Program Files\containerd\config.toml`

func TestContainerdPrintsTheDefaultsOfItsVersion(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	p := m.Process("p")
	for version, real := range map[string]string{
		"v1.6.20": "1.6.27", "v1.7.12": "1.7.12", "v2.0.5": "2.0.0", "v2.1.0": "2.2.0", "v2.2.3": "2.2.0",
		"v2.4.2": "2.4.2",
	} {
		m.WriteFile(`C:\containerd.exe`, simulated.Binary(simulated.BinarySpec{Name: "containerd", Version: version}))
		out, _, code, err := run(t, p, `C:\containerd.exe`, "config", "default")
		// The output of the real programs, which the tests of package
		// containerdconfig use.
		wanted, readErr := os.ReadFile(filepath.Join("..", "..", "format", "containerdconfig", "testdata",
			"default-"+real+".toml"))
		if readErr != nil {
			t.Fatal(readErr)
		}
		switch {
		case out != string(wanted):
			t.Errorf("%s: out is %v, want %v", version, out, string(wanted))
		case code != 0:
			t.Errorf("%s: code is %v, want 0", version, code)
		case err != nil:
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestContainerdRefusesAConfiguration(t *testing.T) {
	for text, why := range map[string]string{
		"version = 2\n[plugins\n": "failed to load TOML",
		"version = 3\n":           "expected containerd config version equal to or less than `2`, got `3`",
	} {
		m := newMachine(t, simulated.Options{})
		p := m.Process("p")
		m.Kill("kubelet")
		m.Kill("containerd")
		m.WriteFile(containerdToml, []byte(text))
		if err := p.Services.Start(t.Context(), "containerd"); !errors.Is(err, fault.ErrStartFailed) {
			t.Errorf("%q: the error is %v, want %v", text, err, fault.ErrStartFailed)
		}
		if log, err := m.ReadFile(`C:\var\log\containerd\containerd.log`); !strings.Contains(string(log), why) {
			t.Errorf("%q: its log does not say %s: %s (%v)", text, why, log, err)
		}
	}
}

func TestContainerdListensWhereItIsTold(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("p")
	m.Kill("kubelet")
	m.Kill("containerd")
	m.WriteFile(containerdToml, []byte("version = 2\n[grpc]\naddress = '\\\\.\\pipe\\other'\n"))
	if err := p.Services.Start(t.Context(), "containerd"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "containerd", platform.Running)
	conn, err := p.Network.DialPipe(t.Context(), `\\.\pipe\other`)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := p.Network.DialPipe(t.Context(), simulated.ContainerdPipe); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("the usual pipe: %v", err)
	}
}

// A kubelet that cannot start ends before it reports to the SCM.
func TestKubeletsThatCannotBegin(t *testing.T) {
	for _, test := range []struct{ version, flags, why string }{
		{"v1.36.3", "--config=/var/lib/kubelet/none.yaml", "failed to load kubelet config file"},
		{"v1.36.3", "--config=/wrong.yaml", `failed to decode: time: missing unit in duration \"10\"`},
		{"v1.36.3", "--pod-infra-container-image=pause", "unknown flag: --pod-infra-container-image"},
		{"v1.34.0", "--pod-infra-container-image=pause", ""},
		{"v1.36.3", "--node-labels=beta.kubernetes.io/instance-type=x", ""},
		{"v1.24.0", "--network-plugin=cni", "unknown flag: --network-plugin"},
		{"v1.36.3", "--feature-gates=MemoryManager=true", "failed to set feature gates from initial flags-based config: " +
			"unrecognized feature gate: MemoryManager"},
		{"v1.35.4", "--feature-gates=MemoryManager=true,Other=false", ""},
		{"v1.36.3", "--node-labels=a=b,node-role.kubernetes.io/worker=", "unknown 'kubernetes.io' or 'k8s.io' labels " +
			"specified with --node-labels: [node-role.kubernetes.io/worker]"},
		{"v1.23.0", "--network-plugin=cni --pod-infra-container-image=pause --node-labels=node.kubernetes.io/x=y", ""},
	} {
		m := newMachine(t, simulated.Options{})
		p := m.Process("p")
		m.Kill("kubelet")
		m.WriteFile(`C:\wrong.yaml`, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+
			"nodeStatusUpdateFrequency: \"10\"\n"))
		m.WriteFile(simulated.KubeletPath, simulated.Binary(simulated.BinarySpec{Name: "kubelet",
			Version: test.version}))
		if err := p.Services.Configure(t.Context(),
			platform.ServiceConfig{Name: "kubelet", CommandLine: simulated.KubeletPath + " --windows-service " +
				test.flags}); err != nil {
			t.Fatal(err)
		}
		err := p.Services.Start(t.Context(), "kubelet")
		if test.why == "" {
			if err != nil {
				t.Errorf("%s %s: %v", test.version, test.flags, err)
			}
			continue
		}
		log, _ := m.ReadFile(`C:\var\log\kubelet\kubelet.log`)
		switch {
		case !errors.Is(err, fault.ErrStartFailed):
			t.Errorf("the error is %v, want %v", err, fault.ErrStartFailed)
		case !strings.Contains(string(log), test.why):
			t.Errorf("log lacks %q:\n%s", test.why, string(log))
		}
	}
}

func TestKubeletWithoutCredentialsCrashesAfterItStarted(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("p")
	m.Kill("kubelet")
	command := simulated.KubeletPath + ` --windows-service --kubeconfig=/etc/kubernetes/kubelet.conf ` +
		`--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf`
	if err := p.Services.Configure(t.Context(), platform.ServiceConfig{Name: "kubelet", CommandLine: command,
		Recovery: &platform.Recovery{}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Services.Start(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "kubelet", platform.Stopped)
	log, _ := m.ReadFile(`C:\var\log\kubelet\kubelet.log`)
	if !strings.Contains(string(log), "unable to load bootstrap kubeconfig: stat ") {
		t.Errorf("its log: %s", log)
	}
}

// kube-log-runner is the service's process; its child reports to the SCM.
func TestAServiceUnderKubeLogRunner(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("p")
	m.Kill("kubelet")
	m.WriteFile(`C:\k\kube-log-runner.exe`,
		simulated.Binary(simulated.BinarySpec{Name: "kube-log-runner", Version: "v1.36.3"}))
	command := `C:\k\kube-log-runner.exe --log-file=C:/logs/k.log ` + simulated.KubeletPath + ` --windows-service`
	if err := p.Services.Configure(t.Context(), platform.ServiceConfig{Name: "kubelet", CommandLine: command,
		Recovery: &platform.Recovery{}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Services.Start(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "kubelet", platform.Running)
	runner, child := processes(t, p)
	switch {
	case runner.PID == 0:
		t.Error("runner.PID is 0")
	case child.ParentPID != runner.PID:
		t.Errorf("child.ParentPID is %v, want %v", child.ParentPID, runner.PID)
	case m.ServiceStates()["kubelet"].PID != runner.PID:
		t.Errorf(`m.ServiceStates()["kubelet"].PID is %v, want %v`, m.ServiceStates()["kubelet"].PID, runner.PID)
	}
	if err := p.Files.Remove(simulated.KubeletPath); !errors.Is(err, fault.ErrPermission) {
		t.Errorf("remove the kubelet that runs: %v", err)
	}
	if err := p.Services.Stop(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "kubelet", platform.Stopped)
	if status, err := p.Services.Status(t.Context(), "kubelet"); err != nil || status.ExitCode != 0 {
		t.Errorf("stopped with %+v, %v", status, err)
	}
	if err := p.Services.Start(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "kubelet", platform.Running)
	m.Kill("kubelet.exe")
	awaitState(t, p, "kubelet", platform.Stopped)
	if runner, child := processes(t, p); runner.PID != 0 || child.PID != 0 {
		t.Errorf("still there: %+v %+v", runner, child)
	}
}

func processes(t *testing.T, windows *platform.Platform) (runner, kubelet platform.Process) {
	t.Helper()
	list, err := windows.Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		switch p.Name {
		case "kube-log-runner.exe":
			runner = p
		case "kubelet.exe":
			kubelet = p
		}
	}
	return runner, kubelet
}

func TestVersionsOfWhatJoins(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	p := m.Process("p")
	for _, test := range []struct{ name, version, args, wanted string }{
		{"kubeadm", "v1.36.3", "version -o short", "v1.36.3\n"},
		{"kubectl", "v1.36.3", "--version", "kubectl v1.36.3\n"},
		{"crictl", "v1.36.0", "--version", "crictl version v1.36.0\n"},
		{"kubelet", "v1.36.3", "--version", "Kubernetes v1.36.3\n"},
	} {
		m.WriteFile(`C:\it.exe`, simulated.Binary(simulated.BinarySpec{Name: test.name, Version: test.version}))
		switch out, _, code, err := run(t, p, `C:\it.exe`, strings.Fields(test.args)...); {
		case out != test.wanted:
			t.Errorf("out is %v, want %v", out, test.wanted)
		case code != 0:
			t.Errorf("code is %v, want 0", code)
		case err != nil:
			t.Error(err)
		}
	}
}

// A caller that looks for published files finds a mirror's.
func TestAMirrorHasWhatIsLookedFor(t *testing.T) {
	folder := t.TempDir()
	release := simulated.Release{Kubernetes: "v1.36.3", Containerd: "1.7.12", Crictl: "1.36.0",
		Faults: map[string]simulated.Fault{"kubelet": simulated.Unhealthy}}
	if err := simulated.WriteMirror(folder, release); err != nil {
		t.Fatal(err)
	}
	store := artifact.NewStore(artifact.Options{Cache: t.TempDir()})
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	p := m.Process("p")
	for component, version := range map[artifact.Component]string{
		artifact.Kubelet: "1.36.3", artifact.Kubeadm: "v1.36.3", artifact.LogRunner: "1.36.3",
		artifact.Kubectl:    "1.36.3",
		artifact.Containerd: "1.7.12", artifact.Crictl: "1.36.0",
	} {
		set, err := store.Resolve(t.Context(), artifact.Wish{Component: component, Version: version, Mirror: folder,
			Field: "test"}, ui.Discard{})
		if err != nil {
			t.Errorf("%s: %v", component, err)
			continue
		}
		raw, err := os.ReadFile(set.Files[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		m.WriteFile(`C:\it.exe`, raw)
		if component == artifact.Kubeadm || component == artifact.LogRunner {
			continue // these have no --version
		}
		if out, _, _, err := run(t, p, `C:\it.exe`, "--version"); !strings.Contains(out,
			strings.TrimPrefix(version, "v")) || err != nil {
			t.Errorf("%s says %q, %v", component, out, err)
		}
	}
}

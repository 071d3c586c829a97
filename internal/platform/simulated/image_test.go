package simulated_test

import (
	"bytes"
	"debug/pe"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestBinaryIsAPortableExecutable(t *testing.T) {
	for architecture, machine := range map[string]uint16{
		"": pe.IMAGE_FILE_MACHINE_AMD64, "amd64": pe.IMAGE_FILE_MACHINE_AMD64,
		"386": pe.IMAGE_FILE_MACHINE_I386, "arm64": pe.IMAGE_FILE_MACHINE_ARM64,
	} {
		raw := simulated.Binary(simulated.BinarySpec{Name: "kubelet", Machine: architecture, Size: 10_000})
		if len(raw) < 10_000 || len(raw) > 11_000 {
			t.Errorf("%s: %d bytes", architecture, len(raw))
		}
		f, err := pe.NewFile(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", architecture, err)
		}
		switch {
		case f.Machine != machine:
			t.Errorf("%s: f.Machine is %v, want %v", architecture, f.Machine, machine)
		case len(f.Sections) != 1:
			t.Errorf("%s: f.Sections has %d elements, want 1: %v", architecture, len(f.Sections), f.Sections)
		case f.Characteristics&pe.IMAGE_FILE_EXECUTABLE_IMAGE == 0:
			t.Errorf("%s: f.Characteristics & pe.IMAGE_FILE_EXECUTABLE_IMAGE is 0", architecture)
		}
		if data, err := f.Sections[0].Data(); err != nil || len(data) != len(raw)-0x400 {
			t.Errorf("%s: section of %d bytes, %v", architecture, len(data), err)
		}
	}
	a := simulated.Binary(simulated.BinarySpec{Name: "a", Seed: 1})
	b := simulated.Binary(simulated.BinarySpec{Name: "a", Seed: 2})
	if bytes.Equal(a, b) || !bytes.Equal(a, simulated.Binary(simulated.BinarySpec{Name: "a", Seed: 1})) {
		t.Error("the seed alone decides what differs")
	}
}

func TestAFileThatIsNoProgramDoesNotRun(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	whole := simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1", Size: 5000})
	for name, data := range map[string][]byte{
		"text.exe": []byte("this is a text"), "empty.exe": nil, "truncated.exe": whole[:2000],
		"arm.exe": simulated.Binary(simulated.BinarySpec{Name: "kubelet", Machine: "arm64"}),
	} {
		m.WriteFile(`C:\k\`+name, data)
		switch _, _, _, err := run(t, m.Process("p"), `C:\k\`+name, "--version"); {
		case err == nil:
			t.Errorf("%s: no error, want one", name)
		case errors.Is(err, fault.ErrNotExist):
			t.Errorf("%s: the error is %v, want anything but %v", name, err, fault.ErrNotExist)
		}
	}
	m.WriteFile(`C:\k\old.exe`, simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1", Machine: "386"}))
	if out, _, _, err := run(t, m.Process("p"), `C:\k\old.exe`, "--version"); out != "Kubernetes v1\n" || err != nil {
		t.Errorf("a 32-bit program: %q, %v", out, err)
	}
}

// TestAGoProgramForWindows builds a real program: the simulated machine
// identifies it by the linker's data.
func TestAGoProgramForWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/player\n\ngo 1.24\n")
	write("main.go", "package main\n\nvar name, version, fault string\n\nfunc main() { println(name, version, "+
		"fault) }\n")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", "player.exe",
		"-ldflags", "-s -w -X main.name=kubelet -X main.version=v1.31.2 -X main.fault=unhealthy", ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "player.exe"))
	if err != nil {
		t.Fatal(err)
	}

	m := newMachine(t, simulated.Options{})
	m.WriteFile(`C:\anything.exe`, raw)
	p := m.Process("p")
	switch out, _, code, err := run(t, p, `C:\anything.exe`, "--version"); {
	case out != "Kubernetes v1.31.2\n":
		t.Errorf("out is %q, want %q", out, "Kubernetes v1.31.2\n")
	case code != 0:
		t.Errorf("code is %v, want 0", code)
	case err != nil:
		t.Error(err)
	}
	m.Kill("kubelet")
	m.WriteFile(simulated.KubeletPath, raw)
	if err := p.Services.Start(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, "kubelet", platform.Running)
	if code, _, err := p.Network.HTTPGet(t.Context(), "http://127.0.0.1:10248/healthz"); code != 500 || err != nil {
		t.Errorf("its fault is to be unhealthy: %d, %v", code, err)
	}
}

// TestAProgramOfAnotherModule builds as the lab builds Kubernetes: in a module
// that requires it.
func TestAProgramOfAnotherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/lab\n\ngo 1.24\n\nrequire example.com/tools v1.35.1\n\n" +
			"replace example.com/tools => ./tools\n",
		"lab.go":                    "package lab\n\nimport _ \"example.com/tools\"\n",
		"tools/go.mod":              "module example.com/tools\n\ngo 1.24\n",
		"tools/tools.go":            "package tools\n",
		"tools/cmd/kubeadm/main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-o", "it.exe", "example.com/tools/cmd/kubeadm")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "it.exe"))
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, simulated.Options{})
	m.WriteFile(`C:\k\it.exe`, raw)
	switch out, _, _, err := run(t, m.Process("p"), `C:\k\it.exe`, "version", "-o", "short"); {
	case out != "v1.35.1\n":
		t.Errorf("out is %q, want %q", out, "v1.35.1\n")
	case err != nil:
		t.Error(err)
	}
}

func TestLargeFiles(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	raw := simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1.30.0", Size: 80 << 20})
	p := m.Process("p")
	w, err := p.Files.Create(`C:\k\new.exe`, platform.CreateNew)
	if err != nil {
		t.Fatal(err)
	}
	for rest := raw; len(rest) > 0; {
		n, err := w.Write(rest[:min(len(rest), 512<<10)])
		if err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	switch out, _, _, err := run(t, p, `C:\k\new.exe`, "--version"); {
	case !strings.Contains(out, "v1.30.0"):
		t.Errorf("out lacks %q:\n%s", "v1.30.0", out)
	case err != nil:
		t.Error(err)
	}
	got, err := m.ReadFile(`C:\k\new.exe`)
	if err != nil || !bytes.Equal(got, raw) {
		t.Errorf("%d bytes of %d, %v", len(got), len(raw), err)
	}
}

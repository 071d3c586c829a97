package simulated_test

import (
	"bytes"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// run runs a command and returns its streams and exit code.
func run(t *testing.T, p *platform.Platform, path string, args ...string) (stdout, stderr string, code int, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	code, err = p.Processes.Run(t.Context(), platform.Command{Path: path, Args: args, Stdout: &out, Stderr: &errOut})
	return out.String(), errOut.String(), code, err
}

func TestExecutablesTellTheirVersion(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	p := m.Process("test")
	m.WriteFile(`C:\k\kubelet.exe.swdt-0123`,
		simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1.30.1"}))
	for path, want := range map[string]string{
		`c:/K/Kubelet.exe`: "Kubernetes v1.28.4\n",
		simulated.ContainerdPath: "containerd github.com/containerd/containerd v1.6.27 " +
			"64b8a811b07ba6288238eefc14d898ee0b5b99ba\n",
		`C:\k\kubelet.exe.swdt-0123`: "Kubernetes v1.30.1\n",
	} {
		out, _, code, err := run(t, p, path, "--version")
		switch {
		case out != want:
			t.Errorf("%s: out is %v, want %v", path, out, want)
		case code != 0:
			t.Errorf("%s: code is %v, want 0", path, code)
		case err != nil:
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOneBufferTakesBothStreams(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	var both bytes.Buffer
	code, err := m.Process("test").Processes.Run(t.Context(), platform.Command{
		Path: "cmd", Args: []string{"/c", "echo one & echo two 1>&2 & exit 7"}, Stdout: &both, Stderr: &both,
	})
	switch {
	case both.String() != "one \r\ntwo \r\n" && both.String() != "one\r\ntwo\r\n":
		t.Fatalf("stdout and stderr together are %q, want the lines one and two", both.String())
	case code != 7:
		t.Fatalf("code is %v, want 7", code)
	case err != nil:
		t.Fatal(err)
	}
}

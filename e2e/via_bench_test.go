//go:build e2e

package e2e

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkWays compares the ways to a node in one run: SSH, and the stream through the real API
// server, kubelet and containerd, with a new pod for each command and with a kept pod. Each iteration is
// one run of swdt. docs/benchmarks.md has results.
func BenchmarkWays(b *testing.B) {
	c := newThroughCluster(b)
	overSSH := credentialsOf(b, c.cluster.sandboxInfo)
	for _, way := range []measuredWay{
		{name: "ssh", credentials: overSSH},
		{name: "new pod", credentials: c.credentials, flags: []string{"--via", "kubernetes"}},
		{name: "kept pod", credentials: c.credentials, flags: []string{"--via", "kubernetes,keep"}},
	} {
		ok(b, way.line(b, "status", "")...) // the first contact installs the agent, or makes the pod
		b.Run("exec hostname/"+way.name, way.calls)
		b.Run("cp 84 MB/"+way.name, way.copies)
		b.Run("push of a kubelet/"+way.name, way.pushes)
	}
}

type measuredWay struct {
	name, credentials string
	flags             []string
}

// line returns the command line that runs a command on the node.
func (w measuredWay) line(t testing.TB, command, provisioners string, args ...string) []string {
	t.Helper()
	return append(append([]string{command, "-c", nodeFile(t, w.credentials, provisioners)}, w.flags...), args...)
}

// calls runs a program that prints a few bytes.
func (w measuredWay) calls(b *testing.B) {
	line := w.line(b, "exec", "", "--", "hostname")
	for b.Loop() {
		ok(b, line...)
	}
}

// copies sends 84 MB, as much as a kubelet has, that no compression and no earlier file makes smaller.
func (w measuredWay) copies(b *testing.B) {
	const size = 84e6
	b.SetBytes(size)
	file := filepath.Join(b.TempDir(), "file")
	data := make([]byte, size)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		_, _ = rand.Read(data) // never fails
		if err := os.WriteFile(file, data, 0o600); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		ok(b, w.line(b, "cp", "", file, fmt.Sprintf(`node:C:\bench-%d`, i%2))...)
	}
}

// pushes replaces one build of the kubelet by the next, as a file that no service runs.
func (w measuredWay) pushes(b *testing.B) {
	next := func(name string) []string {
		return w.line(b, "push", provisioner("bench", "", lab(b, "node/"+name), `C:\bench\kubelet.exe`, ""))
	}
	lines := [][]string{next("kubelet-1.36.3.exe"), next("kubelet-1.36.3-edited.exe")}
	ok(b, lines[0]...)
	ok(b, lines[1]...) // the cache now has both
	for i := 0; b.Loop(); i++ {
		ok(b, lines[i%2]...)
	}
}

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/hns/hnstest"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/testing/gobuild"
	"github.com/swdt-dev/swdt/internal/ui"
)

// TestHNSOfACalicoNode checks that the real agent reads a Calico node's network from the DLLs that
// replace Windows' own DLLs, and that every output equals the output for the same documents in this
// process and on a simulated node. Microsoft's hcsshim reads the same network from these DLLs, so
// they return the documents in the form of Windows.
func TestHNSOfACalicoNode(t *testing.T) {
	t.Parallel()
	fixture := hnstest.Calico()
	info := wineSandbox(t)
	prefix, err := wine.Open(info.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := prefix.Path(`C:\ProgramData\swdt-hns`)
	if err != nil {
		t.Fatal(err)
	}
	if got := hnsState(t, info.Config); len(got.Networks)+len(got.Endpoints)+len(got.LoadBalancers)+
		len(got.Namespaces) != 0 {
		t.Fatalf("there is a network at first: %+v", got)
	}
	if err := fixture.WriteTo(folder); err != nil {
		t.Fatal(err)
	}
	state := hns.Parse(fixture.Documents())
	// An empty list in a document becomes an empty slice, and a missing list nil.
	if diff := cmp.Diff(state, hnsState(t, info.Config), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the agent did not read what was planted (-planted +read):\n%s", diff)
	}
	t.Run("tables", func(t *testing.T) { hnsTables(t, info.Config, state) })
	t.Run("graph", func(t *testing.T) { hnsGraph(t, info.Config, state) })
	t.Run("as on a simulated node", func(t *testing.T) { hnsSimulated(t, info.Config, folder) })
	t.Run("hcsshim", func(t *testing.T) { hnsByHcsshim(t, prefix, state) })
	t.Run("compute systems", func(t *testing.T) { hcsOnWine(t, info.Config, folder) })
}

// hnsState returns a node's state, from the output of the four list commands.
func hnsState(t *testing.T, config string) (s hns.State) {
	t.Helper()
	for _, kind := range []string{"networks", "endpoints", "loadbalancers", "namespaces"} {
		var result struct{ Nodes []hns.State }
		r := ok(t, "hns", kind, "-c", config, "--accept-new-host-key", "-o", "json")
		var compact bytes.Buffer // the raw documents must not have the layout of swdt's output
		if err := json.Compact(&compact, []byte(r.stdout)); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(compact.Bytes(), &result); err != nil || len(result.Nodes) != 1 {
			t.Fatalf("%v: %d nodes", err, len(result.Nodes))
		}
		n := result.Nodes[0]
		switch kind {
		case "networks":
			s.Networks = n.Networks
		case "endpoints":
			s.Endpoints = n.Endpoints
		case "loadbalancers":
			s.LoadBalancers = n.LoadBalancers
		case "namespaces":
			s.Namespaces = n.Namespaces
		}
	}
	return s
}

// hnsTables checks that each table has as many rows as the table that this process computes, and that
// swdt warns about unknown owners.
func hnsTables(t *testing.T, config string, state hns.State) {
	v := hns.View{State: state, All: state}
	for kind, table := range map[string]ui.Listing{
		"networks": v.Networks(), "endpoints": v.Endpoints(), "loadbalancers": v.LoadBalancers(),
		"namespaces": v.Namespaces(), "policies": v.Policies(),
	} {
		r := ok(t, "hns", kind, "-c", config)
		if lines := strings.Count(r.stdout, "\n"); lines != len(table.Rows)+1 {
			t.Errorf("%s: %d lines for %d rows", kind, lines, len(table.Rows))
		}
		warned := strings.Contains(r.stderr,
			"the owners of endpoints are unknown, since the container runtime does not answer")
		if warned != (kind != "networks") { // containerd does not run
			t.Errorf("%s: %s", kind, r.stderr)
		}
	}
}

func hnsGraph(t *testing.T, config string, state hns.State) {
	var want bytes.Buffer
	if err := (hns.View{State: state, All: state}).Graph("e2e").SVG(&want); err != nil {
		t.Fatal(err)
	}
	if got := ok(t, "hns", "graph", "-c", config).stdout; got != want.String() {
		t.Errorf("got is %v, want %v", got, want.String())
	}
}

// hnsSimulated puts the same files on a simulated node, and expects the same output.
func hnsSimulated(t *testing.T, config, folder string) {
	state := t.TempDir()
	info := decoded[sandboxInfo](t, ok(t, "sandbox", "up", "--name", "e2e", "--state-dir", state, "-o", "json"))
	t.Cleanup(func() { ok(t, "sandbox", "down", "--name", "e2e", "--state-dir", state) })
	for _, kind := range []string{"networks", "endpoints", "namespaces"} {
		// Remove the files of the pod that the simulated node has from the beginning.
		ok(t, "exec", "-c", info.Config, "--", "cmd", "/c", `del /q C:\ProgramData\swdt-hns\`+kind+`\*.json`)
	}
	ok(t, "cp", "-c", info.Config, folder, `node:C:\ProgramData`)
	if got, want := hnsState(t, info.Config), hnsState(t, config); !reflect.DeepEqual(got, want) {
		t.Error("the simulated node has another network")
	}
}

// hnsByHcsshim reads the DLLs with Microsoft's own library.
func hnsByHcsshim(t *testing.T, prefix *wine.Prefix, state hns.State) {
	const exe = `C:\hcnread.exe`
	local, err := prefix.Path(exe)
	if err != nil {
		t.Fatal(err)
	}
	program := gobuild.Program{Package: ".", Folder: "../internal/sandbox/wine/testdata/hcnread", Windows: true}
	gobuild.BuildAs(t, program, local)
	out, err := prefix.Command(t.Context(), exe).Output()
	if err != nil {
		t.Fatalf("hcnread: %v", err)
	}
	var read struct{ Networks, Endpoints, Namespaces, LoadBalancers []json.RawMessage }
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	again := hns.Parse(map[platform.NetworkKind][][]byte{
		platform.HNSNetworks: bytesOf(read.Networks), platform.HNSEndpoints: bytesOf(read.Endpoints),
		platform.HNSNamespaces: bytesOf(read.Namespaces), platform.HNSLoadBalancers: bytesOf(read.LoadBalancers),
	})
	if got, want := withoutRaw(again), withoutRaw(state); !reflect.DeepEqual(got, want) {
		t.Errorf("hcsshim reads\n%+v\nwant\n%+v", got, want)
	}
}

func bytesOf(documents []json.RawMessage) (all [][]byte) {
	for _, d := range documents {
		all = append(all, d)
	}
	return all
}

// withoutRaw removes the raw documents, since their form depends on their writer.
func withoutRaw(s hns.State) hns.State {
	policies := func(list []hns.Policy) (all []hns.Policy) {
		for _, p := range list {
			all = append(all, hns.Policy{Type: p.Type}) // hcsshim does not parse the settings of policies
		}
		return all
	}
	var w hns.State
	for _, n := range s.Networks {
		n.Raw, n.Policies, n.Subnets = nil, policies(n.Policies), slices.Clone(n.Subnets)
		for i := range n.Subnets {
			n.Subnets[i].Policies = policies(n.Subnets[i].Policies)
		}
		w.Networks = append(w.Networks, n)
	}
	for _, e := range s.Endpoints {
		e.Raw, e.Policies = nil, policies(e.Policies)
		w.Endpoints = append(w.Endpoints, e)
	}
	for _, l := range s.LoadBalancers {
		l.Raw = nil
		w.LoadBalancers = append(w.LoadBalancers, l)
	}
	for _, n := range s.Namespaces {
		n.Raw = nil
		w.Namespaces = append(w.Namespaces, n)
	}
	return w
}

// hcsOnWine lists a compute system through the real agent and ends it.
func hcsOnWine(t *testing.T, config, folder string) {
	const id = "5f1c0d2e9b"
	if err := os.MkdirAll(filepath.Join(folder, "systems"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "systems", id+".json"),
		[]byte(`{"Id":"`+id+`","SystemType":"Container",`+
			`"Owner":"containerd-shim-runhcs-v1.exe","State":"Running",`+
			`"Statistics":{"Memory":{"MemoryUsagePrivateWorkingSetBytes":22020096}},`+
			`"ProcessList":[{"ProcessId":4711,"ImageName":"web.exe","KernelTime100ns":10000000}]}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	if r := ok(t, "hcs", "list", "-c", config); !strings.Contains(r.stdout, id) ||
		!strings.Contains(r.stdout, "22.0 MB") {
		t.Errorf("list: %s", r.stdout)
	}
	if r := swdt(t, "hcs", "kill", id, "-c", config); r.code != 2 || !strings.Contains(r.stderr, "--yes") {
		t.Errorf("kill without --yes: exit code %d: %s", r.code, r.stderr)
	}
	ok(t, "hcs", "kill", id[:5], "--yes", "-c", config)
	if _, err := os.Stat(filepath.Join(folder, "systems", id+".json")); !os.IsNotExist(err) {
		t.Errorf("the system is still there: %v", err)
	}
	if r := swdt(t, "hcs", "kill", id, "--yes", "-c", config); r.code != 1 {
		t.Errorf("kill what is not there: exit code %d", r.code)
	}
}

// TestHNSAndHCSOfARealPod checks that swdt finds the pod of a network namespace that the real
// containerd has made, and runs commands in the pod's container.
func TestHNSAndHCSOfARealPod(t *testing.T) {
	t.Parallel()
	n := newPodNode(t, "1.7.12")
	p := n.runPod(t, "ordinary", false, "--cores", "0")
	namespaces := ok(t, "hns", "namespaces", "-c", n.config).stdout
	if !strings.Contains(namespaces, " default/ordinary ") {
		t.Errorf("the namespace that containerd made: %s", namespaces)
	}
	status, err := n.runtime.PodSandboxStatus(t.Context(), &runtimev1.PodSandboxStatusRequest{PodSandboxId: p.sandbox})
	if err != nil {
		t.Fatal(err)
	}
	// The lab's network plugin makes no endpoint.
	ip, id := status.GetStatus().GetNetwork().GetIp(), hnstest.ID("endpoint of a real pod")
	folder := filepath.Join(n.Prefix, "drive_c/ProgramData/swdt-hns/endpoints")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	endpoint := `{"ID":"` + id + `","Name":"ordinary","IpConfigurations":[{"IpAddress":"` + ip +
		`","PrefixLength":24}]}`
	if err := os.WriteFile(filepath.Join(folder, id+".json"), []byte(endpoint), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ok(t, "hns", "endpoints", "--ip", ip, "-c", n.config).stdout; !strings.Contains(got,
		"default/ordinary  "+ip) {
		t.Errorf("its endpoint: %s", got)
	}

	r := swdt(t, "hcs", "exec", "default/ordinary", "-c", n.config, "--", "cmd", "/c", "echo out& echo err>&2& exit 7")
	switch {
	case r.code != 7:
		t.Errorf("exec: r.code is %v, want 7", r.code)
	case strings.TrimSpace(r.stdout) != "out":
		t.Errorf("exec: r.stdout is %q, want %q", strings.TrimSpace(r.stdout), "out")
	case strings.TrimSpace(r.stderr) != "err":
		t.Errorf("exec: r.stderr is %q, want %q", strings.TrimSpace(r.stderr), "err")
	}
	const text = "two lines,\r\none without an end"
	if err := os.WriteFile(filepath.Join(n.Prefix, "drive_c/some file.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ok(t, "hcs", "read", p.container[:12], `C:\some file.txt`, "-c", n.config).stdout; got != text {
		t.Errorf("read: %q", got)
	}
	if r := swdt(t, "hcs", "read", "default/ordinary/burn", `C:\nothing.txt`, "-c", n.config); r.code != 1 ||
		r.stdout != "" {
		t.Errorf("read what is not there: %s", r)
	}
	n.removePod(t, p)
	if got := ok(t, "hns", "namespaces", "-c", n.config).stdout; strings.Contains(got, "default/ordinary") {
		t.Errorf("the pod is gone: %s", got)
	}
}

package wine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/gobuild"
)

// The PowerShell shim answers the queries of kubeadm's system verification, and fails for every
// other command instead of pretending success.
func TestPowerShellAnswersKubeadm(t *testing.T) {
	p := prepared(t)
	const properties = `Get-ItemProperty -Path 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'`
	for script, want := range map[string]string{
		"(" + properties + ").ProductName": "Windows Server 2022 Datacenter",
		"$props = " + properties + `; "$($props.CurrentMajorVersionNumber).` +
			`$($props.CurrentMinorVersionNumber).$($props.CurrentBuildNumber)"`: "10.0.20348",
	} {
		if got := output(t, p.Command(t.Context(), "powershell", script)); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	for _, args := range [][]string{{"-Command", "Get-Service"}, {"Get-Service"}, nil} {
		if out, err := p.Command(t.Context(), "powershell", args...).CombinedOutput(); err == nil {
			t.Errorf("powershell %q succeeded: %s", args, out)
		}
	}
}

// HNS returns the objects whose files exist in the prefix, at first none, to clients of both of its
// DLLs.
func TestHNSAnswersWithTheFilesInThePrefix(t *testing.T) {
	p := prepared(t)
	ask := hnsAsk(t, p)
	if got := ask("GET", "/endpoints/"); got != `{"Success":true,"Output":[]}` {
		t.Errorf("endpoints at first: %s", got)
	}
	if got := ask("list", "Network", "{}"); got != "[]" {
		t.Errorf("networks at first: %s", got)
	}
	const id = "11111111-AAAA-2222-BBBB-333333333333"
	plant(t, p, "networks", id, `{"ID":"`+id+`","Name":"Calico"}`)
	plant(t, p, "endpointstats", id, `{"BytesSent":7}`)
	if got := ask("list", "Network", "{}"); got != `["`+id+`"]` {
		t.Errorf("networks: %s", got)
	}
	if got := ask("read", "Network", id); got != `{"ID":"`+id+`","Name":"Calico"}` {
		t.Errorf("the network: %s", got)
	}
	if got := ask("GET", "/networks/"); got != `{"Success":true,"Output":[{"ID":"`+id+`","Name":"Calico"}]}` {
		t.Errorf("networks: %s", got)
	}
	if got := ask("GET", "/endpointstats/"+id); got != `{"Success":true,"Output":{"BytesSent":7}}` {
		t.Errorf("statistics: %s", got)
	}
	if got := ask("GET", "/globals/version"); got != `{"Success":true,"Output":{"Major":15,"Minor":5}}` {
		t.Errorf("its version: %s", got)
	}
	plant(t, p, "globals", "version", `{"Major":9,"Minor":3}`)
	if got := ask("GET", "/globals/version"); got != `{"Success":true,"Output":{"Major":9,"Minor":3}}` {
		t.Errorf("its planted version: %s", got)
	}
	for _, request := range [][]string{{"GET", "/endpoints/none"}, {"POST", "/networks/"}, {"GET", `/../secret`}} {
		if got := ask(request...); !strings.Contains(got, `"Success":false`) {
			t.Errorf("%q: got lacks %q:\n%s", request, `"Success":false`, got)
		}
	}
}

// hnsAsk builds testdata/hnsask, and returns a function that runs it and returns its output.
func hnsAsk(t *testing.T, p *Prefix) func(args ...string) string {
	t.Helper()
	exe := `C:\hnsask.exe`
	local, err := p.Path(exe)
	if err != nil {
		t.Fatal(err)
	}
	gobuild.BuildAs(t, gobuild.Program{Package: "./testdata/hnsask", Windows: true}, local)
	return func(args ...string) string { return output(t, p.Command(t.Context(), exe, args...)) }
}

// HNS keeps the objects that programs make, for other programs and after their end. It lists those
// that a filter selects, and counts the calls of each program.
func TestHNSKeepsWhatProgramsMake(t *testing.T) {
	p := prepared(t)
	ask := hnsAsk(t, p)
	counts, err := p.Path(`C:\ProgramData\swdt-hns\calls`)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(counts, 0o755); err != nil {
		t.Fatal(err)
	}
	plantFile(t, p, "delay.txt", "1 1")
	id := func(object string) string { return strings.Split(object, `"`)[3] }
	filter := func(name, value string) string {
		return `{"Flags":0,"Filter":"{\"` + name + `\":\"` + value + `\"}"}`
	}

	first := ask("create", "Endpoint", `{"Name":"ä","HostComputeNetwork":"n-1"}`)
	if want := `{"ID":"` + id(first) + `","Name":"ä","HostComputeNetwork":"n-1"}`; len(id(first)) != 36 || first != want {
		t.Errorf("the endpoint: %s", first)
	}
	other := ask("create", "Endpoint", `{"HostComputeNetwork":"n-2"}`)
	for query, want := range map[string]string{
		filter("VirtualNetwork", "N-1"): `["` + id(first) + `"]`, filter("VirtualNetwork", "n-3"): "[]",
		filter("ID", id(other)): `["` + id(other) + `"]`, filter("ID", id(other)[1:]): "[]",
		filter("Name", "ab"): "[]",
	} {
		if got := ask("list", "Endpoint", query); got != want {
			t.Errorf("endpoints for %s: %s, want %s", query, got, want)
		}
	}

	balancer := id(ask("create", "LoadBalancer", `{"FrontendVIPs":["10.0.0.1"]}`))
	const changed = `{"FrontendVIPs":["10.0.0.2"]}`
	if got, want := ask("modify", "LoadBalancer", balancer, changed), `{"ID":"`+balancer+`",`+changed[1:]; got != want {
		t.Errorf("the changed load balancer: %s, want %s", got, want)
	}
	if got := ask("GET", "/loadbalancers/"+balancer); !strings.Contains(got, "10.0.0.2") {
		t.Errorf("another program reads the load balancer as %s", got)
	}
	ask("delete", "LoadBalancer", balancer)
	if got := ask("list", "LoadBalancer", "{}"); got != "[]" {
		t.Errorf("load balancers after the deletion: %s", got)
	}
	network := id(ask("create", "Network", `{"Name":"flannel.4096","Type":"Overlay"}`))
	if got := ask("list", "Network", filter("Name", "flannel.4096")); got != `["`+network+`"]` {
		t.Errorf("networks: %s", got)
	}
	expectMakers(t, filepath.Join(filepath.Dir(counts), "makers"), "HcnCreateNetwork "+network, "HcnCreateEndpoint "+id(first),
		"HcnCreateEndpoint "+id(other), "HcnCreateLoadBalancer "+balancer, "HcnModifyLoadBalancer "+balancer,
		"HcnDeleteLoadBalancer "+balancer)
	want := map[string]int{"HcnCreateEndpoint": 2, "HcnEnumerateEndpoints": 5, "HcnModifyLoadBalancer": 1,
		"HcnDeleteLoadBalancer": 1, "HcnQueryLoadBalancerProperties": 2, "HcnCloseLoadBalancer": 2}
	got := countedCalls(t, counts)
	for function, number := range want {
		if got[function] != number {
			t.Errorf("%s was counted %d times, want %d", function, got[function], number)
		}
	}
}

// expectMakers checks that the files in the folder have these lines. Processes that run one after the other may have
// the same PID, and so one file.
func expectMakers(t *testing.T, folder string, lines ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "hnsask-*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		t.Errorf("the records of makers are %q, want %q", got, lines)
	}
}

// countedCalls adds up the calls of all programs.
func countedCalls(t *testing.T, folder string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "hnsask-*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines, _, _ := strings.Cut(string(text), "\x00")
		for line := range strings.Lines(lines) {
			var function string
			var number int
			if _, err := fmt.Sscanf(line, "%s %d", &function, &number); err != nil {
				t.Fatalf("%s: line %q: %v", file, line, err)
			}
			counts[function] += number
		}
	}
	return counts
}

func plantFile(t *testing.T, p *Prefix, name, content string) {
	t.Helper()
	path, err := p.Path(`C:\ProgramData\swdt-hns\` + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func plant(t *testing.T, p *Prefix, kind, id, object string) {
	t.Helper()
	folder, err := p.Path(`C:\ProgramData\swdt-hns\` + kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, id+".json"), []byte(object), 0o644); err != nil {
		t.Fatal(err)
	}
}

package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
)

func result(name string, value NodeResult, err error) fleet.Result[NodeResult] {
	r := fleet.Result[NodeResult]{Value: value, Err: err}
	r.Document = config.Document{Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: name}}}
	return r
}

func changedNode() NodeResult {
	return NodeResult{Name: "w1", Result: Changed, Components: []*ComponentResult{
		{Name: "containerd", Action: ActionUnchanged, PreviousSHA256: "0f0f0f0f", SHA256: "0f0f0f0f",
			Version: Version{"1.7.12", "1.7.12", "1.7.12"}},
		{
			Name: "kubelet", Action: ActionReplaced, Destination: `c:\k\kubelet.exe`, PreviousSHA256: "a1b2c3d4",
			SHA256:   "d4e5f6a7",
			Version:  Version{"1.29.0", "v1.28.0", "v1.29.0"},
			Service:  &Service{Name: "kubelet", State: "running", PID: 4711},
			Transfer: &transfer.Result{Method: "whole", SizeBytes: 83_553_792, SentBytes: 500_000},
			Seconds:  Seconds{Obtain: 0.1, Transfer: 0.9, Down: 0.6, Healthy: 1.8},
		},
		{Name: "tool", Action: ActionCreated, SHA256: "123456", Transfer: &transfer.Result{Method: "none",
			SizeBytes: 1000}, Message: "there is no service tool"},
	}}
}

func TestTextOfOneNode(t *testing.T) {
	var out strings.Builder
	if err := NewReport([]fleet.Result[NodeResult]{result("w1", changedNode(), nil)}).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	want := `
containerd  v1.7.12            0f0f0f           unchanged
kubelet     v1.28.0 → v1.29.0  a1b2c3 → d4e5f6  83.6 MB (sent 500.0 kB)  push 0.9s  down 0.6s  healthy 1.8s
tool        -                  new 123456       1.0 kB (sent before)     push 0ms                            there is no service tool
`
	if out.String() != want[1:] {
		t.Errorf("got\n%s", out.String())
	}
}

func TestTextOfNothingToDo(t *testing.T) {
	var out strings.Builder
	n := NodeResult{Name: "w1", Result: Unchanged, Components: []*ComponentResult{
		{Name: "containerd", Action: ActionUnchanged}, {Name: "kubelet", Action: ActionUnchanged},
	}}
	switch err := NewReport([]fleet.Result[NodeResult]{result("w1", n, nil)}).WriteText(&out); {
	case err != nil:
		t.Error(err)
	case out.String() != "nothing to do: containerd, kubelet up to date\n":
		t.Errorf("out.String() is %q, want %q", out.String(), "nothing to do: containerd, kubelet up to date\n")
	}
}

func TestTextOfADryRun(t *testing.T) {
	var out strings.Builder
	n := changedNode()
	n.DryRun = true
	if err := NewReport([]fleet.Result[NodeResult]{result("w1", n, nil)}).WriteText(&out); err != nil ||
		!strings.Contains(out.String(), "a1b2c3 → d4e5f6  would be replaced\n") {
		t.Errorf("got\n%s%v", out.String(), err)
	}
}

func TestSummaryOfTwentyNodes(t *testing.T) {
	results := make([]fleet.Result[NodeResult], 20)
	for i := range results {
		n := changedNode()
		n.Name = fmt.Sprintf("w%02d", i)
		results[i] = result(n.Name, n, nil)
	}
	results[3] = result("w03", NodeResult{}, errors.New("connection refused: is sshd running?"))
	results[7] = result("w07", NodeResult{Name: "w07", Result: RolledBack, Error: "kubelet: not healthy\nlog"},
		errors.New("kubelet: not healthy\nlog"))
	results[9] = result("w09", NodeResult{Name: "w09", Result: Failed, Error: "disk full"}, errors.New("disk full"))
	report := NewReport(results)
	if report.Summary != (Summary{Changed: 17, Failed: 3}) {
		t.Errorf("summary %+v", report.Summary)
	}
	var out strings.Builder
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	want := `
20 nodes: 17 changed, 0 unchanged, 3 failed
  w03  failed                  connection refused: is sshd running?
  w07  failed and rolled back  kubelet: not healthy
  w09  failed                  disk full
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%s", out.String())
	}
}

func TestJSONHasThePromisedNames(t *testing.T) {
	report := NewReport([]fleet.Result[NodeResult]{result("w1", changedNode(), nil),
		result("w2", NodeResult{}, errors.New("refused"))})
	out, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"nodes":[{"name":"w1","result":"changed","error":"","dryRun":false,"components":[`,
		`{"name":"kubelet","action":"replaced","destination":"c:\\k\\kubelet.exe","sha256":"d4e5f6a7",` +
			`"previousSha256":"a1b2c3d4",` +
			`"version":{"wanted":"1.29.0","before":"v1.28.0","after":"v1.29.0"},"service":{"name":"kubelet",` +
			`"state":"running","pid":4711,"started":null},` +
			`"transfer":{"method":"whole","sizeBytes":83553792,"sentBytes":500000,`,
		`"seconds":{"obtain":0.1,"transfer":0.9,"down":0.6,"healthy":1.8}`,
		`{"name":"w2","result":"failed","error":"refused","dryRun":false,"components":[],"readySeconds":0,` +
			`"parts":[],"recovered":[]}`,
		`"summary":{"changed":1,"unchanged":0,"failed":1}}`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
}

func TestTextOfStatus(t *testing.T) {
	results := []fleet.Result[NodeStatus]{
		{Value: NodeStatus{
			Name: "w1", OS: OS{"Windows Server 2022", "20348.2849"}, Architecture: "amd64", UptimeSeconds: 7200,
			PendingReboot: []string{"servicing"},
			Transactions:  []Recovered{{ID: "t1", Holder: "ann", State: "starting"}},
			Components: []ComponentStatus{
				{Name: "kubelet", Version: "v1.29.0", SHA256: "a1b2c3d4", Service: &Service{State: "running", PID: 7}, PID: 7,
					UptimeSeconds: 90, Drift: DriftNone},
				{Name: "tool", SHA256: "", Drift: DriftMissing},
			},
		}},
		{Value: NodeStatus{Name: "w2"}, Err: errors.New("refused")},
	}
	for _, test := range []struct {
		nodes int
		wide  bool
		want  string
	}{
		{1, false, `
w1: Windows Server 2022 20348.2849 amd64, up 2h
  a reboot is pending: servicing
  transaction t1 by ann: unfinished (starting)
COMPONENT  VERSION  HASH    SERVICE          PID  UPTIME  DRIFT    MESSAGE
kubelet    v1.29.0  a1b2c3  running          7    1m      none     -
tool       -        -       no such service  -    -       missing  -
`}, {2, false, `
NODE  COMPONENT  VERSION  HASH    SERVICE          PID  UPTIME  DRIFT    MESSAGE
w1    kubelet    v1.29.0  a1b2c3  running          7    1m      none     -
w1    tool       -        -       no such service  -    -       missing  -
w1: a reboot is pending: servicing
w1: transaction t1 by ann: unfinished (starting)
w2: refused
`}, {2, true, `
NODE  COMPONENT  VERSION  HASH    SERVICE          PID  UPTIME  DRIFT    MESSAGE  PREVIOUS  DESTINATION  WINDOWS
w1    kubelet    v1.29.0  a1b2c3  running          7    1m      none     -        -         -            Windows Server 2022 20348.2849
w1    tool       -        -       no such service  -    -       missing  -        -         -            Windows Server 2022 20348.2849
w1: a reboot is pending: servicing
w1: transaction t1 by ann: unfinished (starting)
w2: refused
`},
	} {
		var out strings.Builder
		page := ui.NewPage(&out, false)
		page.Wide = test.wide
		if err := NewStatusReport(results[:test.nodes]).WriteText(page); err != nil {
			t.Fatal(err)
		}
		if out.String() != test.want[1:] {
			t.Errorf("%d nodes, wide %v: got\n%s", test.nodes, test.wide, out.String())
		}
	}
}

// Only states that need attention have a colour.
func TestColoursOfStatus(t *testing.T) {
	component := func(name, state string, drift Drift) ComponentStatus {
		return ComponentStatus{Name: name, Service: &Service{State: state}, Drift: drift}
	}
	results := []fleet.Result[NodeStatus]{
		{Value: NodeStatus{Name: "w1", Components: []ComponentStatus{
			component("a", string(platform.Running), DriftNone), component("b", string(platform.Stopped), DriftBinary),
			component("c", string(platform.StartPending), DriftNone),
		}}},
		{Value: NodeStatus{Name: "w2"}, Err: errors.New("refused")},
	}
	var out strings.Builder
	if err := NewStatusReport(results).WriteText(ui.NewPage(&out, true)); err != nil {
		t.Fatal(err)
	}
	const want = "NODE  COMPONENT  VERSION  HASH  SERVICE        PID  UPTIME  DRIFT   MESSAGE\n" +
		"w1    a          -        -     running        -    -       none    -\n" +
		"w1    b          -        -     \x1b[31mstopped\x1b[0m        -    -       \x1b[33mbinary\x1b[0m  -\n" +
		"w1    c          -        -     \x1b[33mstart pending\x1b[0m  -    -       none    -\n" +
		"w2: \x1b[31mrefused\x1b[0m\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
}

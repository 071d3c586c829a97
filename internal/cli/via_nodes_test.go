package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/ui"
)

// mixed is a cluster with Windows nodes and a Linux node, without any node file.
type mixed struct {
	t       *testing.T
	cluster *apiserver.Cluster
	via     string // the value of --via
}

const mixedNode = `
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {kubernetes.io/os: SYSTEM, pool: POOL}}
status: {conditions: [{type: Ready, status: "True"}]}
---
`

func newMixed(t *testing.T) *mixed {
	t.Helper()
	workdir.Change(t, t.TempDir())
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	c, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	errs := []error{c.WriteKubeconfig(kubeconfig)}
	embedded, err := agent()
	errs = append(errs, err)
	machines := map[string]*simulated.Machine{}
	for _, n := range []struct{ name, system, pool string }{
		{"win-1", "windows", "a"}, {"win-2", "windows", "b"}, {"win-10", "windows", "b"}, {"lin-1", "linux", "a"},
		{"lin-2", "linux", "c"},
	} {
		errs = append(errs, c.Plant(strings.NewReplacer("NAME", n.name, "SYSTEM", n.system, "POOL", n.pool).
			Replace(mixedNode)))
		if n.system != "windows" {
			continue
		}
		m := simulated.New(simulated.Options{Preset: simulated.Member, Hostname: n.name,
			Agent: &simulated.Agent{Hash: embedded.Hash, Main: sandbox.AgentMain(embedded.Hash)}})
		t.Cleanup(m.Close)
		machines[n.name] = m
		errs = append(errs, m.AwaitUp(t.Context()))
	}
	c.SetKubelets(sandbox.SimulatedKubelets(machines))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return &mixed{t: t, cluster: c, via: "kubernetes,kubeconfig=" + kubeconfig}
}

// swdt runs a command line with --via.
func (m *mixed) swdt(args ...string) (code int, stdout, stderr string) {
	m.t.Helper()
	var out, story bytes.Buffer
	code = cli.Run(m.t.Context(), ui.Streams{Out: &out, Err: &story}, append(args, "--via", m.via),
		cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	return code, out.String(), story.String()
}

// swdtBefore runs a command line, with --via before its arguments, which may be those of a program.
func (m *mixed) swdtBefore(args []string) (code int, stdout, stderr string) {
	m.t.Helper()
	var out, story bytes.Buffer
	args = append([]string{args[0], "--via", m.via}, args[1:]...)
	code = cli.Run(m.t.Context(), ui.Streams{Out: &out, Err: &story}, args,
		cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	return code, out.String(), story.String()
}

func TestNodesAreChosenByTheClustersLabels(t *testing.T) {
	m := newMixed(t)
	tests := map[string]struct {
		args []string
		want []string // the names of the nodes
		says string   // on stderr
	}{
		"the system":              {[]string{"-l", "kubernetes.io/os=windows"}, []string{"win-1", "win-2", "win-10"}, ""},
		"a set":                   {[]string{"-l", "pool in (b, c),kubernetes.io/os=windows"}, []string{"win-2", "win-10"}, ""},
		"not in a set":            {[]string{"-l", "pool notin (b),kubernetes.io/os=windows"}, []string{"win-1"}, ""},
		"without a label":         {[]string{"-l", "!gpu,pool=a"}, []string{"win-1"}, "left out nodes that do not run Windows: lin-1\n"},
		"several Linux nodes":     {[]string{"-l", "pool"}, []string{"win-1", "win-2", "win-10"}, "Windows: lin-1, lin-2"},
		"names and labels":        {[]string{"-l", "pool=b", "-n", "win-1,win-10,win-10"}, []string{"win-10"}, ""},
		"names without labels":    {[]string{"-n", "win-10,win-1"}, []string{"win-1", "win-10"}, ""},
		"one at a time, in order": {[]string{"-l", "pool=b", "--parallel", "1"}, []string{"win-2", "win-10"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m.t = t
			code, stdout, stderr := m.swdt(append([]string{"status", "-o", "name"}, test.args...)...)
			if diff := cmp.Diff(test.want, strings.Fields(strings.ReplaceAll(stdout, "node/", ""))); code != 0 || diff != "" {
				t.Errorf("exit code %d\n%s\n%s", code, diff, stderr)
			}
			if !strings.Contains(stderr, test.says) || test.says == "" && strings.Contains(stderr, "left out") {
				t.Errorf("lacks %q: %s", test.says, stderr)
			}
		})
	}
}

// A choice of no Windows node contacts none, and says how to go on.
func TestLabelsThatChooseNoNode(t *testing.T) {
	m := newMixed(t)
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"no node": {[]string{"-l", "pool=d"}, 2, `no Windows node of the cluster has the labels "pool=d"; ` +
			"`kubectl get nodes --show-labels --kubeconfig"},
		"Linux nodes": {[]string{"-l", "kubernetes.io/os=linux"}, 2, "only nodes that do not run Windows: lin-1, lin-2; "},
		"other names": {[]string{"-l", "pool=b", "-n", "win-1"}, 2, `none of the Windows nodes win-1 has the labels "pool=b"`},
		"a typo":      {[]string{"-l", "pool=b", "-n", "win-11,x"}, 2, `the cluster has no node "win-11"; did you mean win-1`},
		"bad grammar": {[]string{"-l", "pool in (a"}, 2, "write labels as in pool=a,!gpu or zone in (x,y)"},
		"nothing":     {nil, 2, "-l kubernetes.io/os=windows"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m.t = t
			code, stdout, stderr := m.swdt(append([]string{"status"}, test.args...)...)
			if code != test.code || stdout != "" || !strings.Contains(strings.ReplaceAll(stderr, "'", "`"), test.says) {
				t.Errorf("exit code %d, want %d, and %s\n%s%s", code, test.code, test.says, stdout, stderr)
			}
		})
	}
	for _, r := range m.cluster.Requests() {
		if r.Resource == "pods" {
			t.Fatalf("%s %s", r.Verb, r.Resource)
		}
	}
	if code, _, stderr := m.swdt("join", "-l", "pool"); code != 2 || !strings.Contains(stderr, "join needs SSH") {
		t.Errorf("%d: %s", code, stderr)
	}
}

// Without a node file, -n is completed by the cluster, once in a while; a cluster that does not answer is no error.
func TestNodesOfTheClusterAreCompleted(t *testing.T) {
	m := newMixed(t)
	complete := func(args ...string) string {
		code, stdout, stderr := m.complete(args...)
		if code != 0 {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		return strings.Join(lines[:len(lines)-1], " ")
	}
	m.cluster.OnRequest(func(apiserver.Request) apiserver.Verdict { return apiserver.Verdict{Status: 503} })
	if got := complete("status", "-n", ""); got != "" {
		t.Errorf("of a broken cluster: %q", got)
	}
	m.cluster.OnRequest(nil)
	before := len(m.cluster.Requests())
	for toComplete, want := range map[string]string{
		"": "win-1 win-2 win-10", "win-1": "win-1 win-10", "win-2,": "win-2,win-1 win-2,win-10", "lin": "",
	} {
		if got := complete("status", "-n", toComplete); got != want {
			t.Errorf("%q: got %q, want %q", toComplete, got, want)
		}
	}
	if asked := len(m.cluster.Requests()) - before; asked != 1 {
		t.Errorf("%d requests for 4 completions", asked)
	}
	// Other completions need a pod on the nodes: they contact nothing.
	if got := complete("capture", "-l", "pool=a", "--pod", ""); got != "" || len(m.cluster.Requests())-before != 1 {
		t.Errorf("completed %q, and asked the cluster", got)
	}
}

// complete completes the last argument.
func (m *mixed) complete(args ...string) (code int, stdout, stderr string) {
	m.t.Helper()
	var out, story bytes.Buffer
	begun := time.Now()
	code = cli.Run(m.t.Context(), ui.Streams{Out: &out, Err: &story},
		append([]string{"__completeNoDesc", args[0], "--via", m.via}, args[1:]...),
		cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	m.t.Logf("%v in %s", args, time.Since(begun).Round(time.Millisecond))
	return code, out.String(), story.String()
}

// The role is YAML. Another format is refused, not ignored.
func TestFormatOfThePrintedRole(t *testing.T) {
	m := newMixed(t)
	for format, want := range map[string]int{"text": 0, "yaml": 0, "json": 2, "name": 2} {
		code, stdout, stderr := m.swdt("status", "--print-rbac", "-o", format)
		if code != want || (want == 0) != strings.Contains(stdout, "kind: ClusterRole") ||
			(want != 0) != strings.Contains(stderr, "use -o yaml") {
			t.Errorf("-o %s: exit code %d, want %d\n%s%s", format, code, want, stdout, stderr)
		}
	}
}

// The role has the rule for labels if the command has labels, and the error without it names it.
func TestOnlyLabelsNeedToListNodes(t *testing.T) {
	m := newMixed(t)
	for _, test := range []struct {
		args []string
		want bool
	}{{[]string{"-n", "win-1"}, false}, {nil, false}, {[]string{"-l", "pool"}, true}} {
		code, stdout, stderr := m.swdt(append([]string{"status", "--print-rbac"}, test.args...)...)
		if got := strings.Contains(stdout, "verbs: [get, list] # list: to choose"); code != 0 || got != test.want {
			t.Errorf("%v: exit code %d, list nodes %v\n%s%s", test.args, code, got, stdout, stderr)
		}
	}
	m.cluster.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Resource == "nodes" && r.Verb == "list" {
			return apiserver.Forbid()
		}
		return apiserver.Verdict{}
	})
	code, _, stderr := m.swdt("status", "-l", "pool=a")
	for _, want := range []string{"may not list nodes", "--print-rbac -l pool=a"} {
		if code != 3 || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, lacks %q: %s", code, want, stderr)
		}
	}
	if code, _, stderr := m.swdt("status", "-n", "win-1"); code != 0 {
		t.Errorf("-n: exit code %d\n%s", code, stderr)
	}
}

// With a node file, -l means the labels of the file, whatever the cluster's are.
func TestLabelsOfANodeFileStayThose(t *testing.T) {
	m := newMixed(t)
	text := fmt.Sprintf("%[1]s\nmetadata: {name: win-1, labels: {pool: mine}}\n"+
		"spec: {credentials: {kubernetes: {}}}\n"+
		"---\n%[1]s\nmetadata: {name: win-2, labels: {pool: a}}\nspec: {credentials: {kubernetes: {}}}\n",
		"apiVersion: windows.k8s.io/v1alpha1\nkind: Node")
	if err := os.WriteFile("swdt.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{"pool=mine": "node/win-1\n", "pool=a": "node/win-2\n"} {
		if code, stdout, stderr := m.swdt("status", "-c", "swdt.yaml", "-o", "name", "-l", selector); code != 0 || stdout != want {
			t.Errorf("%s: exit code %d, %q\n%s", selector, code, stdout, stderr)
		}
	}
	code, _, stderr := m.swdt("status", "-c", "swdt.yaml", "-l", "kubernetes.io/os=windows")
	want := `no node has the labels "kubernetes.io/os=windows"; there are: win-1 (pool=mine)`
	if code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	for _, r := range m.cluster.Requests() {
		if r.Resource == "nodes" && r.Verb == "list" {
			t.Error("listed the cluster's nodes")
		}
	}
}

// The file of the home folder is a default: it adds what it knows to the nodes that the cluster's labels choose, and
// leaves their cluster alone.
func TestTheHomeFileDescribesNodesOfTheCluster(t *testing.T) {
	m := newMixed(t)
	home := filepath.Join(os.Getenv("HOME"), ".config", "swdt")
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: mine, labels: {pool: mine}}\n" +
		"spec:\n  credentials: {kubernetes: {node: win-1, context: elsewhere, namespace: own}}\n" +
		"  kubernetes: {provisioners: [{name: kubelet, sourceURL: kubelet.exe, destination: 'C:\\k\\kubelet.exe'}]}\n"
	if err := errors.Join(os.MkdirAll(home, 0o700),
		os.WriteFile(filepath.Join(home, "config.yaml"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, want string }{
		{"-l pool=a", "node/mine\n"},
		{"-l kubernetes.io/os=windows", "node/mine\nnode/win-2\nnode/win-10\n"},
		{"-l pool=a -n mine", "node/mine\n"},
		{"-n win-2", "node/win-2\n"},
		{"-n win-1", "node/mine\n"},
	} {
		args := append([]string{"status", "-o", "name"}, strings.Fields(test.args)...)
		code, stdout, stderr := m.swdt(args...)
		if code != 0 || stdout != test.want {
			t.Errorf("%s: exit code %d, %q, want %q\n%s", test.args, code, stdout, test.want, stderr)
		}
	}
	if _, stdout, stderr := m.swdt("status", "-l", "pool=a"); !strings.Contains(stdout, "kubelet") {
		t.Errorf("the component of the file is missing:\n%s%s", stdout, stderr)
	}
	// Without a choice, and with the file's own names, the file decides, and so does its cluster.
	for _, args := range [][]string{nil, {"-n", "mine"}} {
		code, _, stderr := m.swdt(append([]string{"status"}, args...)...)
		if code != 2 || !strings.Contains(stderr, "elsewhere") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
	if code, _, stderr := m.swdt("status", "-l", "pool=="); code != 2 || !strings.Contains(stderr, "write pool=VALUE") {
		t.Errorf("a label without a value: exit code %d\n%s", code, stderr)
	}
}

// The attacker is the API server, or whoever may write Nodes. A name reaches neither the terminal nor the shell as
// it is.
func TestNamesOfAHostileCluster(t *testing.T) {
	m := newMixed(t)
	plant := func(name, system string) {
		err := m.cluster.Plant(strings.NewReplacer("NAME", `"`+name+`"`, "SYSTEM", system, "POOL", "evil").Replace(mixedNode))
		if err != nil {
			t.Fatal(err)
		}
	}
	plant(`lin\e[2J`, "linux")
	code, _, stderr := m.swdt("status", "-l", "pool in (evil,a)")
	if code != 0 || strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, "left out") {
		t.Errorf("exit code %d: %q", code, stderr)
	}
	plant(`win\e[2J$(reboot)`, "windows")
	code, _, stderr = m.swdt("status", "-l", "pool in (evil,a)")
	if code != 2 || strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, "--node") {
		t.Errorf("exit code %d: %q", code, stderr)
	}
	if _, stdout, _ := m.complete("status", "-n", ""); strings.Contains(stdout, "reboot") {
		t.Errorf("offers %q", stdout)
	}
}

//go:build e2e

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wayRow is a command that runs over SSH, and then through the cluster, to the same node. A row of the guide
// docs/guides/without-ssh.md is made of its first three fields, so they are literals.
type wayRow struct {
	line     string               // how swdt is run: its arguments, split at spaces
	compared string               // what must be the same; "": the JSON, but for the fields in but
	but      []string             // fields of the JSON that rightly differ
	run      func(w way) (is any) // runs it another way than line alone, and returns what must be the same
}

// wayRows are in an order in which no row changes what a later one compares.
var wayRows = []wayRow{
	{line: "status", but: []string{"uptimeSeconds"}},
	{line: "exec -- hostname", compared: "exit code, stdout", run: way.printed},
	{line: "exec -- cmd /c exit 7", compared: "exit code, stdout", run: way.printed},
	{line: "exec -- nothing-of-this-name", compared: "exit code, stdout", run: way.printed},
	{line: "powershell --command Write-Output", compared: "exit code, stdout", run: way.printed},
	{line: "cp FILE node:C:/ways, and back", compared: "3 MB, as they were sent", run: way.copies},
	{line: `logs file:C:\ways.log --tail 3`},
	{line: "logs list", but: []string{"sizeBytes", "modified"}},
	{line: "events", compared: "exit code, since Wine has no event log", run: way.printed},
	{line: "cri pods", compared: "JSON, in any order", run: way.unordered},
	{line: "cri images", compared: "JSON, in any order", run: way.unordered},
	{line: "cri proxy, and crictl pods", compared: "crictl's JSON", run: way.proxied},
	{line: "cri proxy with the streams of crictl", compared: "`exec -it`, `attach`, `port-forward`: answers, exit code, 1 MB there and back", run: way.streamed},
	{line: "stats watch --source node --for 3s", compared: "sources, pods and containers", run: way.measured},
	{line: "capture --for 1s -w FILE", but: []string{"file"}},
	{line: "diag --out FILE", compared: "the names in the bundle", run: way.bundled},
	{line: "doctor --fail-on never", but: []string{"evidence", "remedy"}},
	{line: "ps", compared: "JSON, but for swdt's own agent,", run: way.processes, but: []string{"taken", "windowSeconds", "uptimeSeconds", "cpuSeconds", "cores", "memoryBytes", "handles", "threads"}},
	{line: "hns networks"},
	{line: "hns endpoints"},
	{line: "hns namespaces"},
	{line: "hcs list"},
	{line: "setup --dry-run"},
	{line: "trace on, status and off", but: []string{"since", "message"}, run: way.traced},
	{line: "push --dry-run", but: []string{"seconds"}, run: way.dryPushed},
	{line: "push of a changed build over a slow link, and rollback", compared: "a patch, of at most a hundredth of the file; JSON", but: []string{"seconds", "transfer", "pid", "started"}, run: way.pushedAndBack},
	{line: "join", compared: "refused through the cluster, exit code 2", run: way.joined},
}

// way is one of the two ways to the node of a cluster, in a test of one row.
type way struct {
	t    *testing.T
	c    throughCluster
	row  wayRow
	name string
	// credentials and flags lead to the node.
	credentials string
	flags       []string
	link        *proxy // carries all connections of the way
}

// TestCommandsOverBothWays runs one table of commands over SSH and through the cluster.
func TestCommandsOverBothWays(t *testing.T) {
	c := newThroughCluster(t)
	c.apply(t, fmt.Sprintf(burnerDeployment, c.registry))
	c.awaitRunningPod(t, "burner")
	for _, program := range []string{"pktmon", "vfpctrl"} { // Wine has none
		ok(t, "cp", "-c", c.config, windowsProgram(t, program), `node:C:\windows\system32\`+program+`.exe`)
	}
	ok(t, "cp", "-c", c.config, windowsProgram(t, "wincat"), "node:"+wincat)
	ok(t, "cp", "-c", c.config, textFile(t, "one\ntwo\nthree\nfour\n"), `node:C:\ways.log`)
	c.compares(t)
	c.expectNothingLeft(t)
}

// compares runs each row over both ways.
func (c throughCluster) compares(t *testing.T) {
	host := c.cluster.sandboxInfo.Hostname
	ssh := way{c: c, name: "ssh", link: newProxy(t, host, 0)}
	ssh.credentials = strings.Replace(credentialsOf(t, c.cluster.sandboxInfo), host, ssh.link.address(), 1)
	// The pod is kept, so that the same pods run while the other way is used.
	through := way{c: c, name: "cluster", flags: []string{"--via", "kubernetes,keep"}}
	through.credentials, through.link = c.through(t, 0)
	for _, w := range []way{ssh, through} { // both agents are installed
		w.t = t
		ok(t, w.args("status", "")...)
	}
	for _, row := range wayRows {
		t.Run(row.line, func(t *testing.T) {
			over := func(w way) any {
				w.t, w.row = t, row
				if row.run != nil {
					return row.run(w)
				}
				return w.json(strings.Fields(row.line)...)
			}
			if diff := cmp.Diff(over(ssh), over(through)); diff != "" {
				t.Errorf("-over SSH +through the cluster:\n%s", diff)
			}
		})
	}
	ok(t, "status", "-c", nodeFile(t, through.credentials, "")) // without keep, it removes the pod
}

// args returns the arguments of swdt for a command on the node.
func (w way) args(command, provisioners string, args ...string) []string {
	w.t.Helper()
	return append(append([]string{command, "-c", nodeFile(w.t, w.credentials, provisioners)}, w.flags...), args...)
}

// line returns the arguments of swdt for the row's line, in which FILE is a new file.
func (w way) line(words ...string) []string {
	w.t.Helper()
	if i := slices.Index(words, "FILE"); i >= 0 {
		words = slices.Clone(words)
		words[i] = filepath.Join(w.t.TempDir(), "file")
	}
	return w.args(words[0], "      []\n", words[1:]...)
}

// json runs a command and returns its JSON without the fields of the row that rightly differ.
func (w way) json(words ...string) any {
	w.t.Helper()
	args := w.line(words...)
	return w.withoutFields(ok(w.t, slices.Insert(args, 1, "-o", "json")...))
}

func (w way) withoutFields(r result) any {
	w.t.Helper()
	var all []any
	decoder := json.NewDecoder(strings.NewReader(r.stdout)) // watches print one value for each line
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			w.t.Fatalf("not JSON: %v\n%s", err, r.stdout)
		}
		all = append(all, without(value, w.row.but))
	}
	if len(all) == 0 {
		w.t.Fatal("no JSON")
	}
	return all
}

// without removes the fields of these names, at any depth.
func without(value any, names []string) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			if slices.Contains(names, name) {
				delete(v, name)
			} else {
				v[name] = without(v[name], names)
			}
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], names)
		}
	}
	return value
}

// printed returns the exit code and stdout. On stderr swdt names the way.
func (w way) printed() any {
	r := swdt(w.t, w.line(strings.Fields(w.row.line)...)...)
	return []any{r.code, r.stdout}
}

// unordered returns the JSON with its lists sorted. containerd lists in no order.
func (w way) unordered() any {
	return sorted(w.t, w.json(strings.Fields(w.row.line)...))
}

// sorted sorts the lists of a value by the JSON of their elements, at any depth.
func sorted(t *testing.T, value any) any {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = sorted(t, v[name])
		}
	case []any:
		text := func(element any) string {
			data, err := json.Marshal(element)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		for i := range v {
			v[i] = sorted(t, v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
	return value
}

// processes returns the JSON without the processes of swdt's agent: it runs in the session of sshd, or in the pod.
func (w way) processes() any {
	return withoutAgent(w.json(strings.Fields(w.row.line)...))
}

func withoutAgent(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = withoutAgent(v[name])
		}
	case []any:
		v = slices.DeleteFunc(v, func(element any) bool {
			process, ok := element.(map[string]any)
			return ok && process["name"] == "swdt-agent.exe"
		})
		for i := range v {
			v[i] = withoutAgent(v[i])
		}
		return v
	}
	return value
}

func (w way) copies() any {
	sent := make([]byte, 3<<20)
	_, _ = rand.Read(sent) // never fails
	local := textFile(w.t, string(sent))
	remote := `node:C:\ways\` + w.name
	ok(w.t, w.args("cp", "      []\n", local, remote)...)
	ok(w.t, w.args("cp", "      []\n", remote, local+".back")...)
	back, err := os.ReadFile(local + ".back")
	if err != nil {
		w.t.Fatal(err)
	}
	if string(back) != string(sent) {
		w.t.Errorf("%s: %d bytes came back, not the %d that were sent", w.name, len(back), len(sent))
	}
	return len(back)
}

func (w way) proxied() any {
	r := w.crictl().run(w.t, nil, "pods", "-o", "json")
	if r.code != 0 || !strings.Contains(r.stdout, "burner") {
		w.t.Errorf("crictl: %v", r)
	}
	return w.withoutFields(r)
}

// crictl returns a crictl that reaches the runtime through `swdt cri proxy`.
func (w way) crictl() crictl {
	w.t.Helper()
	return crictl{endpoint: startProxy(w.t, nodeFile(w.t, w.credentials, "      []\n"), w.flags...).endpoint}
}

// streamed runs the streams of a pod of its own, since attach ends a container.
func (w way) streamed() any {
	name := "streams-" + w.name
	w.c.apply(w.t, fmt.Sprintf(streamsPod, name, w.c.registry))
	w.c.kubectl(w.t, "wait", "--for=condition=Ready", "pod/"+name, fmt.Sprintf("--timeout=%s", commandLimit))
	c := w.crictl()
	only := func(args ...string) string {
		w.t.Helper()
		r := c.run(w.t, nil, append(args, "-q")...)
		ids := strings.Fields(r.stdout)
		if r.code != 0 || len(ids) != 1 {
			w.t.Fatalf("crictl %v: %v", args, r)
		}
		return ids[0]
	}
	p := pod{name: name, sandbox: only("pods", "--name", name)}
	p.container = only("ps", "--pod-pattern", p.sandbox, "--name", "idle")
	echo := only("ps", "--pod-pattern", p.sandbox, "--name", "echo")
	c.testStreams(w.t, p, func(t *testing.T) { c.testAttach(t, echo) })
	w.c.kubectl(w.t, "delete", "pod", name)
	return nil
}

// streamsPod has a container that idles, and one that echoes its stdin.
const streamsPod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: default}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  nodeSelector: {kubernetes.io/os: windows}
  tolerations: [{key: os, value: windows, effect: NoSchedule}]
  hostNetwork: true
  securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}}
  containers:
  - {name: idle, image: '%[2]s/burn:1', args: ["--cores", "0"]}
  - {name: echo, image: '%[2]s/burn:1', command: ['C:\windows\system32\wincat.exe', echo], stdin: true}
`

// measured returns the containers that were measured. Their values differ at each time.
func (w way) measured() any {
	found := map[string]bool{}
	for _, row := range rowsOf(w.t, ok(w.t, slices.Insert(w.line(strings.Fields(w.row.line)...), 1, "-o", "json")...)) {
		found[row.Source+" "+row.Pod] = true
	}
	if len(found) == 0 {
		w.t.Errorf("%s: nothing was measured", w.name)
	}
	return found
}

// bundled returns the names of the files in a bundle.
func (w way) bundled() any {
	file := filepath.Join(w.t.TempDir(), "diag.tar.gz")
	ok(w.t, w.args("diag", "      []\n", "--out", file)...)
	f, err := os.Open(file)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	slices.Sort(names)
	return names
}

// traced switches the debug log of containerd on and off.
func (w way) traced() any {
	on := w.json("trace", "on", "containerd")
	status := w.json("trace", "status")
	off := w.json("trace", "off", "containerd")
	return []any{on, status, off}
}

// push pushes a build of the kubelet that differs little from that of the node.
func (w way) push(args ...string) result {
	w.t.Helper()
	kubelet := provisioner("kubelet", "", lab(w.t, "node/kubelet-1.36.3-edited.exe"), kubeletExe, "")
	return ok(w.t, w.args("push", kubelet, append(args, "-o", "json")...)...)
}

func (w way) dryPushed() any { return w.withoutFields(w.push("--dry-run")) }

// slowLink is a link, in bytes per second, on which a patch takes far less time than all bytes, also on a busy
// machine. Inside one machine, either way of sending can be the faster one.
const slowLink = 4 << 20

// pushedAndBack replaces the kubelet of the node by a changed build, over a slow link, and rolls back.
func (w way) pushedAndBack() any {
	w.link.rate.Store(slowLink)
	r := w.push()
	w.link.rate.Store(0)
	w.expectPatch(r)
	pushed := w.withoutFields(r)
	w.c.expectNode(w.t, "wine-1", "Ready", "v1.36.3-edited")
	kubelet := provisioner("kubelet", "", lab(w.t, "node/kubelet-1.36.3.exe"), kubeletExe, "")
	back := w.withoutFields(ok(w.t, w.args("rollback", kubelet, "kubelet", "-o", "json")...))
	w.c.expectNode(w.t, "wine-1", "Ready", "v1.36.3")
	return []any{pushed, back}
}

// expectPatch fails the test unless the bytes that a push has sent are at most a hundredth of the file.
func (w way) expectPatch(r result) {
	w.t.Helper()
	pushed := decoded[report](w.t, r)
	if len(pushed.Nodes) != 1 || len(pushed.Nodes[0].Components) != 1 {
		w.t.Fatalf("the push reports %+v", pushed)
	}
	sent := pushed.Nodes[0].Components[0].Transfer
	w.t.Logf("%s: %d of %d bytes were sent", w.name, sent.SentBytes, sent.SizeBytes)
	if sent.Method != "delta" || sent.SentBytes == 0 || sent.SentBytes > sent.SizeBytes/100 {
		w.t.Errorf("%s: the push sent %+v", w.name, sent)
	}
}

// joined joins the node again over SSH, which changes nothing. The way through the cluster refuses it.
func (w way) joined() any {
	file := w.c.joinFile(w.t, w.credentials, joinWith{containerd: labContainerd(w.c.registry)})
	r := swdt(w.t, append([]string{"join", "-c", file, "--kubeconfig", w.c.cluster.Kubeconfig, "--allow-reboot"},
		w.flags...)...)
	if want := map[string]int{"ssh": 0, "cluster": badUsage}[w.name]; r.code != want {
		w.t.Errorf("%s: exit code %d, want %d", w.name, r.code, want)
	}
	if w.name == "cluster" && !strings.Contains(r.stderr, "SSH") {
		w.t.Errorf("the refusal does not name SSH: %s", r.stderr)
	}
	return nil
}

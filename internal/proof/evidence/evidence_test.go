package evidence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	runID   = "01234567-89ab-cdef-0123-456789abcdef"
	otherID = "11111111-89ab-cdef-0123-456789abcdef"
	// secret must be in no file of the evidence.
	secret = "hunter2-kT9xQ4vLw8"
)

// requestLimit is the time limit of usual requests.
const requestLimit = 2 * time.Second

// bench is a cluster in memory, and a recorder of the run runID.
type bench struct {
	*cluster.Cluster
	api      *apiserver.Cluster
	recorder *evidence.Recorder
	begin    time.Time
	folder   string
}

func newBench(t *testing.T, hooks ...func(apiserver.Request) apiserver.Verdict) *bench {
	t.Helper()
	api, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := api.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	for _, hook := range hooks {
		api.OnRequest(hook)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig, Timeout: requestLimit})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Cluster: c, api: api, folder: t.TempDir(), begin: time.Now()}
	if err := os.Mkdir(filepath.Join(b.folder, "run-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if b.recorder, err = evidence.Record(t.Context(), c, func() (string, error) { return runID, nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.recorder.Stop)
	return b
}

// plant makes objects, as YAML.
func (b *bench) plant(t *testing.T, manifest string) {
	t.Helper()
	if err := b.api.Plant(manifest); err != nil {
		t.Fatal(err)
	}
}

// asked waits until requests with this verb for this resource of a namespace were made.
func (b *bench) asked(t *testing.T, verb, resource, namespace string) {
	t.Helper()
	err := wait.Condition{Name: verb + " " + resource, Interval: 5 * time.Millisecond, Limit: 20 * time.Second,
		Look: func(context.Context) error {
			if !slices.ContainsFunc(b.api.Requests(), func(r apiserver.Request) bool {
				return r.Verb == verb && r.Resource+"/"+r.Subresource == resource && r.Namespace == namespace
			}) {
				return errors.New("it was not asked")
			}
			return nil
		}}.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) makeNamespace(t *testing.T, name, id string) {
	t.Helper()
	b.plant(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {e2e-run: %s,
		e2e-framework: pods}}}`, name, id))
}

// failure returns the result of a spec that has failed since the bench was made.
func (b *bench) failure(name string) suite.Result {
	return suite.Result{Spec: suite.Spec{Name: name}, Outcome: suite.Failed, State: "failed", Begin: b.begin,
		Message: "pod app is not Running after 5m0s", Seconds: time.Since(b.begin).Seconds()}
}

func (b *bench) write(t *testing.T, o evidence.Options, failed ...suite.Result) map[string]evidence.Bundle {
	t.Helper()
	b.recorder.Stop()
	all, err := b.recorder.Write(t.Context(), b.folder, 1, failed, o, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// files returns the files of a bundle by their names.
func (b *bench) files(t *testing.T, e evidence.Bundle) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range e.Files {
		text, err := os.ReadFile(filepath.Join(b.folder, e.Folder, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}

const evil = "\x1b]0;evil\a\x1b[2J\u202e</script>"

// failingPod has a secret in its environment and in its output.
const failingPod = `
apiVersion: v1
kind: Pod
metadata:
  name: app
  namespace: pods-1
  annotations: {simulated.swdt.dev/log: "connecting with password=` + secret + `\n\e[2Jcannot connect\n"}
spec:
  nodeName: win-1
  containers: [{name: app, image: agnhost, env: [{name: DB_PASSWORD, value: "` + secret + `"}]}]
status:
  phase: Running
  containerStatuses: [{name: app, containerID: c1, state: {running: {}}}]
`

const warning = `
apiVersion: v1
kind: Event
metadata: {name: app.1, namespace: pods-1}
type: Warning
reason: FailedCreatePodSandBox
count: 7
involvedObject: {kind: Pod, name: app, namespace: pods-1}
source: {component: kubelet, host: win-1}
lastTimestamp: "2026-11-23T20:00:00Z"
message: "hcs::CreateComputeSystem: the virtual machine could not be started, token=` + secret + `"
`

// A spec has deleted its namespace when it ends, as e2e.test does. The evidence has what was in it.
func TestEvidenceOfADeletedNamespace(t *testing.T) {
	b := newBench(t)
	b.makeNamespace(t, "others", otherID)
	b.makeNamespace(t, "pods-1", runID)
	b.asked(t, "watch", "pods/", "pods-1")
	b.asked(t, "watch", "events/", "pods-1")
	b.plant(t, failingPod)
	b.plant(t, warning)
	b.recorded(t, "the output", func(r *evidence.Recorder) bool { return r.HasOutput("pods-1") })
	b.seen(t)
	core := b.Clientset().CoreV1()
	if err := errors.Join(core.Pods("pods-1").Delete(t.Context(), "app", metav1.DeleteOptions{}),
		core.Events("pods-1").Delete(t.Context(), "app.1", metav1.DeleteOptions{}),
		core.Namespaces().Delete(t.Context(), "pods-1", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}
	const name = "[sig-node] Pods should ../../run " + evil
	all := b.write(t, evidence.Options{Redact: []string{"agnhos?"}}, b.failure(name))
	bundle := all[name]
	if diff := cmp.Diff("run-1/evidence/1-sig-node-pods-should-run-0-evil-2j-script", bundle.Folder); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(bundle.Causes) == 0 || !strings.Contains(bundle.Causes[0],
		"FailedCreatePodSandBox of pod app (7 times): hcs::CreateComputeSystem") {
		t.Errorf("the causes are %q", bundle.Causes)
	}
	files := b.files(t, bundle)
	for file, text := range files {
		if strings.Contains(text, secret) || strings.ContainsAny(text, "\x1b\a\u202e") {
			t.Errorf("%s has a secret or control characters:\n%s", file, text)
		}
		if strings.Contains(text, "others") || strings.Contains(text, "agnhost") {
			t.Errorf("%s has what it must not have:\n%s", file, text)
		}
	}
	for file, want := range map[string]string{
		evidence.SummaryName:    "FailedCreatePodSandBox",
		"cluster.json":          `"nodeName": "win-1"`,
		"pod-1-1-app-1-app.log": "cannot connect",
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s lacks %q:\n%s", file, want, files[file])
		}
	}
	var objects any
	if err := json.Unmarshal([]byte(files["cluster.json"]), &objects); err != nil {
		t.Errorf("cluster.json: %v", err)
	}
	if !slices.ContainsFunc(bundle.Missing, func(text string) bool {
		return strings.HasPrefix(text, "logs of node win-1: no node file names it, and through the API server: ")
	}) {
		t.Errorf("missing: %q", bundle.Missing)
	}
}

// recorded waits until the records have what the function looks for.
func (b *bench) recorded(t *testing.T, what string, has func(*evidence.Recorder) bool) {
	t.Helper()
	err := wait.Condition{Name: what + " in the records", Interval: 5 * time.Millisecond, Limit: 20 * time.Second,
		Look: func(context.Context) error {
			if !has(b.recorder) {
				return errors.New("it is not there")
			}
			return nil
		}}.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// seen waits until the recorder has the event of the namespace pods-1.
func (b *bench) seen(t *testing.T) {
	t.Helper()
	b.recorded(t, "the event", func(r *evidence.Recorder) bool { return r.HasEvent("pods-1", "FailedCreatePodSandBox") })
}

// A node that cannot be reached is named with the reason, and asked once only.
func TestAnUnreachableNode(t *testing.T) {
	b := newBench(t)
	b.plant(t, `{apiVersion: v1, kind: Node, metadata: {name: win-1, labels: {kubernetes.io/os: windows}}, status: {
		conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting}]}}`)
	b.recorded(t, "the node", func(r *evidence.Recorder) bool { return r.HasNode("win-1") })
	document := config.Document{Node: v1alpha1.Node{}}
	document.Node.Metadata.Name = "win-1"
	dials := 0
	o := evidence.Options{Documents: []config.Document{document},
		Connect: func(context.Context, config.Document, ui.Reporter) (*node.Node, func(), error) {
			dials++
			return nil, nil, errors.New("no route to host")
		}}
	all := b.write(t, o, b.failure("one"), b.failure("two"))
	for _, name := range []string{"one", "two"} {
		want := []string{"node win-1 was not Ready (Unknown): NodeStatusUnknown: Kubelet stopped posting"}
		if diff := cmp.Diff(want, all[name].Causes); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		want = []string{"pods and events: no namespace of this spec was seen", "logs of node win-1: no route to host"}
		if diff := cmp.Diff(want, all[name].Missing[:2]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if dials != 1 {
		t.Errorf("the node was dialled %d times, want 1", dials)
	}
}

// The records are bounded, and the records of specs that passed make room for others.
func TestRecordsAreBounded(t *testing.T) {
	b := newBench(t)
	for n := range 40 {
		b.makeNamespace(t, fmt.Sprintf("many-%d", n), runID)
	}
	b.asked(t, "watch", "events/", "many-29")
	b.asked(t, "watch", "events/", "many-0")
	failures := []suite.Result{}
	for n := range 60 {
		failures = append(failures, b.failure(fmt.Sprintf("spec %d", n)))
	}
	all := b.write(t, evidence.Options{}, failures...)
	if len(all) != 60 || all["spec 59"].Folder != "" || len(all["spec 59"].Missing) != 1 {
		t.Errorf("%d bundles, the last one is %+v", len(all), all["spec 59"])
	}
	if !slices.ContainsFunc(all["spec 0"].Missing, func(text string) bool {
		return strings.HasSuffix(text, "too many other namespaces were watched at the same time")
	}) {
		t.Errorf("missing: %q", all["spec 0"].Missing)
	}
}

// The time limit of requests does not end a watch.
func TestWatchesHaveNoTimeLimit(t *testing.T) {
	b := newBench(t, func(r apiserver.Request) apiserver.Verdict {
		if r.Verb == "watch" && r.Resource == "namespaces" {
			return apiserver.Verdict{Delay: requestLimit + 100*time.Millisecond}
		}
		return apiserver.Verdict{}
	})
	b.asked(t, "watch", "namespaces/", "")
	b.makeNamespace(t, "pods-1", runID)
	b.asked(t, "watch", "events/", "pods-1")
	b.plant(t, warning)
	b.seen(t)
	bundle := b.write(t, evidence.Options{}, b.failure("one"))["one"]
	if slices.ContainsFunc(bundle.Missing, func(text string) bool { return strings.Contains(text, "watched") }) {
		t.Errorf("missing: %q", bundle.Missing)
	}
}

// An API server that allows no watch costs the evidence, not the run.
func TestWithoutPermission(t *testing.T) {
	b := newBench(t)
	b.api.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Resource == "pods" {
			return apiserver.Forbid()
		}
		return apiserver.Verdict{}
	})
	b.makeNamespace(t, "pods-1", runID)
	b.asked(t, "list", "pods/", "pods-1")
	b.asked(t, "watch", "events/", "pods-1")
	b.plant(t, warning)
	b.seen(t)
	bundle := b.write(t, evidence.Options{}, b.failure("one"))["one"]
	if !slices.ContainsFunc(bundle.Missing, func(text string) bool {
		return strings.HasPrefix(text, "the pods of namespace pods-1 could not be watched: ")
	}) || len(bundle.Causes) != 1 {
		t.Errorf("missing: %q, causes: %q", bundle.Missing, bundle.Causes)
	}
}

package up_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/kind/pkg/log"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster/kindtest"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// world is a machine with a container runtime, an API server and a Windows node, and the files for
// them. A mistake changes it at one place.
type world struct {
	t      *testing.T
	folder string

	// The texts of the files: fields of the documents, in YAML.
	control, network, host, version, containerd, join string
	more                                              string // more lines of the node's document
	second                                            string // another document

	kind    *kindtest.Kind
	server  *apiserver.Cluster
	node    *nodetest.Node // nil: the case needs no node
	options up.Options
	// openKind opens the container runtime; nil: kind.
	openKind func(context.Context) (kindcluster.Kind, error)
	pods     *pods // plays the pods of the smoke test; nil: none
}

// newWorld returns a world without mistakes, in which up runs the stages that a place needs.
func newWorld(t *testing.T, place string) *world {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{Names: []string{"cp.example"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, r := range apiserver.Calico() {
		server.AddResource(r)
	}
	w := &world{t: t, folder: t.TempDir(), server: server, control: "kind: {}", network: "plugin: none",
		host: "192.168.122.5", version: "1.36.3", containerd: "version: 1.7.12"}
	w.plant(calico)
	w.kubeconfig("admin.conf", server.Server())
	w.kind = &kindtest.Kind{Folder: t.TempDir(), Kubeconfig: filepath.Join(w.folder, "admin.conf"),
		Images: map[string]string{}, Info: kindcluster.RuntimeInfo{Architecture: "amd64"}}
	w.options = up.Options{Records: t.TempDir(), BootLimit: time.Minute, NetworkLimit: time.Minute}
	w.options.Only = []string{up.Cluster}
	switch place {
	case inNetwork:
		w.control, w.options.Only = existing, []string{up.Cluster, up.Network}
	case inJoin:
		w.control, w.options.Only = existing, []string{up.Cluster, up.Join}
		w.startNode()
	case inCheck:
		w.control, w.options.Only = existing, []string{up.Cluster, up.Check}
	}
	return w
}

// existing are the fields of a document for the API server of a world.
const existing = "existing: {kubeconfig: admin.conf}"

// startNode gives the world a bare Windows machine, on which the feature Containers is on.
func (w *world) startNode() {
	w.t.Helper()
	w.node = nodetest.Start(w.t, "win-1", simulated.Options{Hostname: "WIN-1", Preset: simulated.Minimal})
	containers := &agentv1.SetFeatureRequest{Name: "Containers", Enabled: true}
	if _, err := w.node.Features.Set(w.t.Context(), containers); err != nil {
		w.t.Fatal(err)
	}
	w.node.Machine.Reboot()
	if err := w.node.Reconnect(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	programs := &programs{folder: w.t.TempDir(), sources: source.NewSet(source.Options{})}
	w.options.Join = join.Options{Artifacts: programs, Sources: programs.sources, ReadyTimeout: time.Minute,
		Holder: "tester"}
	w.options.Connect = func(ctx context.Context, _ config.Document, _ ui.Reporter) (*node.Node, error) {
		return w.node.Node, w.node.Reconnect(ctx)
	}
}

// file writes the documents of the world, and returns the path. The cluster's fields are in lines 5
// and 6.
func (w *world) file() string {
	credentials := "username: Administrator"
	if w.host != "" {
		credentials += ", hostname: '" + w.host + "'"
	}
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\nspec:\n" +
		"  controlPlane: {" + w.control + "}\n  network: {" + w.network + "}\n---\n" +
		"apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-1}\nspec:\n" +
		"  credentials: {" + credentials + "}\n" +
		"  kubernetes:\n    version: " + w.version + "\n    containerd: {" + w.containerd + "}\n" +
		"    join: {" + w.join + "}\n" + w.more
	if w.second != "" {
		text += "---\napiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-2}\nspec:\n" + w.second
	}
	path := filepath.Join(w.folder, "cluster.yaml")
	w.write("cluster.yaml", text)
	return path
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.folder, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// plant adds objects to the API server.
func (w *world) plant(manifests string) {
	w.t.Helper()
	if err := w.server.Plant(manifests); err != nil {
		w.t.Fatal(err)
	}
}

// kubeconfig writes the administrator's kubeconfig for an API server at a URL.
func (w *world) kubeconfig(name, url string) {
	w.t.Helper()
	text, err := w.server.Kubeconfig(url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name, string(text))
}

// port returns the port of the API server.
func (w *world) port() string {
	return w.server.Address()[strings.LastIndex(w.server.Address(), ":")+1:]
}

// run is the result of a run of up.
type run struct {
	err      error
	failed   string   // the place at which up failed; "" if it did not
	warnings []string // of all reporters
	checked  []string // messages of the smoke test
	changes  []string // the things that the run has changed
}

// text returns everything that up prints about mistakes.
func (r run) text() string {
	all := append(append([]string{}, r.warnings...), r.checked...)
	if r.err != nil {
		all = append(all, r.err.Error())
	}
	return strings.Join(all, "\n")
}

// up runs swdt up as the command does: it reads the files, opens the container runtime, and makes the
// stages.
func (w *world) up() (r run) {
	w.t.Helper()
	ctx := w.t.Context()
	requests, operations := len(w.server.Requests()), 0
	if w.node != nil {
		operations = len(w.node.Machine.Operations())
	}
	w.kind.Calls()
	doc, documents, err := config.LoadAll([]string{w.file()}, nil)
	if err != nil {
		return run{err: err, failed: inFiles}
	}
	o, story := w.options, &recorder{}
	o.Reporter = func(string) ui.Reporter { return story }
	if doc.Cluster.Spec.ControlPlane.Kind != nil {
		kind := kindcluster.Kind(w.kind)
		if w.openKind != nil {
			if kind, err = w.openKind(ctx); err != nil {
				return run{err: err, failed: inRuntime}
			}
		}
		if o.Clusters, err = kindcluster.New(kind, filepath.Join(w.folder, "clusters")); err != nil {
			w.t.Fatal(err)
		}
	}
	if w.pods != nil {
		w.server.OnRequest(w.pods.play(w.server))
		o.Smoke = &smoke.Options{Wait: 30 * time.Second, ImageFlag: "--smoke-image", LinuxImageFlag: "--smoke-image",
			Kubelets: w.pods, Image: w.pods.image, LinuxImage: w.pods.image}
	}
	report, err := up.Up(ctx, doc, documents, o)
	r = run{err: err, warnings: story.warnings(), changes: w.kind.Calls()}
	for _, request := range w.server.Requests()[requests:] {
		if request.Verb != "get" && request.Verb != "list" && request.Verb != "watch" && request.Resource != "" &&
			!strings.HasPrefix(request.Resource, "selfsubject") && !isHeartbeat(request) {
			r.changes = append(r.changes, request.Verb+" "+request.Resource)
		}
	}
	if w.node != nil {
		for _, op := range w.node.Machine.Operations()[operations:] {
			r.changes = append(r.changes, fmt.Sprint(op.Kind, " ", op.Target))
		}
	}
	if report.Check != nil {
		for _, n := range report.Check.Nodes {
			for _, leg := range n.Legs {
				if leg.Result != smoke.Passed {
					r.checked = append(r.checked, leg.Name+": "+leg.Message)
				}
			}
		}
	}
	var stage *up.StageError
	switch {
	case errors.As(err, &stage):
		r.failed = stage.Kind
	case err != nil:
		r.failed = inFiles
	}
	return r
}

// isHeartbeat reports whether a kubelet sent a request to show that its node is alive. The time that passes
// decides how many of these there are, not up.
func isHeartbeat(r apiserver.Request) bool {
	return isOfNode(r) && (r.Resource == "leases" || r.Resource == "nodes" && r.Subresource == "status")
}

// isOfNode reports whether a kubelet sent a request.
func isOfNode(r apiserver.Request) bool { return strings.HasPrefix(r.User, "system:node:") }

// recorder is a Reporter that keeps the warnings.
type recorder struct {
	ui.Discard
	mu  sync.Mutex
	all []string
}

func (r *recorder) Warn(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf(format, args...))
}

func (r *recorder) warnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.all...)
}

// programs are the programs of a join, made on demand in the requested version.
type programs struct {
	folder  string
	sources *source.Set
}

func (p *programs) Resolve(ctx context.Context, wish artifact.Wish, r ui.Reporter) (artifact.Set, error) {
	names := []string{string(wish.Component)}
	if wish.Component == artifact.Containerd {
		names = append(names, "containerd-shim-runhcs-v1", "ctr")
	}
	set := artifact.Set{Version: wish.Version, From: "a test"}
	for _, name := range names {
		spec := simulated.BinarySpec{Name: name, Version: "v" + wish.Version, Machine: wish.Arch}
		path := filepath.Join(p.folder, name+"-"+wish.Version+".exe")
		if err := os.WriteFile(path, simulated.Binary(spec), 0o600); err != nil {
			return set, err
		}
		binary, err := p.sources.Obtain(ctx, source.Request{URL: path, Executable: true}, r)
		if err != nil {
			return set, err
		}
		set.Files = append(set.Files, artifact.File{Name: name + ".exe", Binary: binary})
	}
	return set, nil
}

// runtimes returns a function that opens the container runtime with programs of these scripts, by
// name, and nothing else in PATH.
func (w *world) runtimes(scripts map[string]string) func(context.Context) (kindcluster.Kind, error) {
	return func(ctx context.Context) (kindcluster.Kind, error) {
		folder := w.t.TempDir()
		for name, script := range scripts {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				return nil, err
			}
		}
		w.t.Setenv("PATH", folder)
		if _, err := kindcluster.OpenKind(ctx, "", log.NoopLogger{}); err != nil {
			return nil, err
		}
		return w.kind, nil
	}
}

package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// throughMany is a cluster with many simulated Windows nodes.
type throughMany struct {
	cluster *apiserver.Cluster
	docs    []config.Document
	options node.Options
}

func newThroughMany(t *testing.T, count int) *throughMany {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	content := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "test", Size: 300_000})
	sum := sha256.Sum256(content)
	agent := agentbin.Agent{Hash: hex.EncodeToString(sum[:]), Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
	c, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	w := &throughMany{cluster: c, options: node.Options{Agent: agent, Clusters: viapod.NewClusters(),
		StateFile: filepath.Join(t.TempDir(), "machines.json")}}
	machines := map[string]*simulated.Machine{}
	for i := range count {
		name := fmt.Sprintf("win-%d", i+1)
		m := simulated.New(simulated.Options{Preset: simulated.Member, Hostname: name,
			Agent: &simulated.Agent{Hash: agent.Hash, Main: sandbox.AgentMain(agent.Hash)}})
		t.Cleanup(m.Close)
		machines[name] = m
		err := errors.Join(c.Plant(strings.ReplaceAll(windowsNode, "win-1", name)), m.AwaitUp(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		var doc config.Document
		doc.Node.Metadata.Name = name
		doc.Node.Spec.Credentials.Kubernetes = &v1alpha1.ThroughKubernetes{Kubeconfig: kubeconfig}
		w.docs = append(w.docs, doc)
	}
	c.SetKubelets(sandbox.SimulatedKubelets(machines))
	return w
}

// hostnames asks each node for its name, at most 10 at a time, as a command does.
func (w *throughMany) hostnames(t *testing.T) []fleet.Result[string] {
	t.Helper()
	return fleet.Run(t.Context(), w.docs, 10, func(ctx context.Context, doc config.Document) (string, error) {
		n, err := node.Connect(ctx, doc, w.options)
		if err != nil {
			return "", err
		}
		defer n.Leave(ctx)
		facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
		return facts.GetHostname(), err
	})
}

// counted returns the number of requests that the API server has got, by verb and resource.
func counted(c *apiserver.Cluster) map[string]int {
	all := map[string]int{}
	for _, r := range c.Requests() {
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		all[what]++
	}
	return all
}

// The nodes of one command share what concerns their cluster and their namespace. Nodes that the command has
// listed are not read again.
func TestFiftyNodesAskTheirClusterOnce(t *testing.T) {
	const nodes = 50
	w := newThroughMany(t, nodes)
	clusters := viapod.NewClusters()
	w.options.Clusters = clusters
	c, err := clusters.Open(cluster.Options{Kubeconfig: w.docs[0].Node.Spec.Credentials.Kubernetes.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := clusters.List(t.Context(), c, labels.Everything())
	if err != nil || len(listed) != nodes {
		t.Fatal(len(listed), err)
	}
	begun := time.Now()
	results := w.hostnames(t)
	t.Logf("%d nodes in %s", nodes, time.Since(begun).Round(time.Millisecond))
	for _, r := range results {
		if r.Err != nil || r.Value != r.Name() {
			t.Errorf("%s calls itself %q: %v", r.Name(), r.Value, r.Err)
		}
	}
	const groups, waysIn = 3, 36 // of others, and into the namespace: each pair is one question, whatever the number of nodes
	want := map[string]int{
		"list nodes": 1, "get namespaces": 1, "create namespaces": 1, "list rolebindings": 1, "list pods": 1,
		"create selfsubjectreviews": 1, "create subjectaccessreviews": groups * waysIn, "create selfsubjectaccessreviews": 2,
		"create pods": nodes, "delete pods": nodes, "get pods": nodes, "get pods/exec": 4 * nodes,
	}
	if diff := cmp.Diff(want, counted(w.cluster)); diff != "" {
		t.Error(diff)
	}
}

// Kept pods are found by the commands after, although 10 ways look for theirs at the same time.
func TestKeptPodsOfManyNodesAreUsedAgain(t *testing.T) {
	const nodes = 20
	w := newThroughMany(t, nodes)
	w.options.KeepPod = true
	for range 2 {
		w.options.Clusters = viapod.NewClusters() // of another command
		if err := fleet.Failures(w.hostnames(t)); err != nil {
			t.Fatal(err)
		}
	}
	if made := counted(w.cluster)["create pods"]; made != nodes {
		t.Errorf("made %d pods for %d nodes", made, nodes)
	}
}

// The nodes share a check and not its interruption: if the node that began it was cancelled, another one asks.
func TestACancelledNodeDoesNotFailTheOthers(t *testing.T) {
	w := newThroughMany(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int64
	w.cluster.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Resource == "rolebindings" && asked.Add(1) == 1 {
			cancel()
			return apiserver.Verdict{Delay: time.Minute} // until the client is gone
		}
		return apiserver.Verdict{}
	})
	var other sync.WaitGroup
	other.Go(func() {
		<-ctx.Done()
		n, err := node.Connect(t.Context(), w.docs[1], w.options)
		if err != nil {
			t.Error(err)
			return
		}
		n.Close()
	})
	if _, err := node.Connect(ctx, w.docs[0], w.options); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled node: %v", err)
	}
	other.Wait()
}

package kindcluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster/kindtest"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

func newFake(t *testing.T) *kindtest.Kind {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}`))
	}))
	t.Cleanup(server.Close)
	return &kindtest.Kind{Folder: t.TempDir(), Server: server.URL}
}

func open(t *testing.T, k kindcluster.Kind, folder string) *kindcluster.Clusters {
	t.Helper()
	clusters, err := kindcluster.New(k, folder)
	if err != nil {
		t.Fatal(err)
	}
	return clusters
}

func document(t *testing.T, kindFields string) config.ClusterDocument {
	t.Helper()
	return documentOf(t, "dev", kindFields)
}

func documentOf(t *testing.T, name, kindFields string) config.ClusterDocument {
	t.Helper()
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\n" +
		"spec: {controlPlane: {kind: {" + kindFields + "}}}\n"
	doc, err := config.LoadCluster([]string{config.Stdin}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestCreateIsDoneOnce(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	doc := document(t, "workers: 0")
	report, err := open(t, k, folder).Create(t.Context(), doc, kindcluster.Options{}, ui.Discard{})
	want := kindcluster.Report{
		Outcome: fleet.Outcome{Name: "dev", Result: fleet.Changed}, Context: "kind-dev", Server: k.Server, Version: "v1.36.3",
		Containers:  []kindcluster.Container{{Name: "dev-control-plane", Role: "control-plane", Address: "172.18.0.2"}},
		Changes:     []string{"make the cluster with kind"},
		Differences: []config.Problem{},
	}
	if diff := cmp.Diff(want, report); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	again, err := open(t, k, folder).Create(t.Context(), doc, kindcluster.Options{}, ui.Discard{})
	want.Result, want.Changes = fleet.Unchanged, []string{}
	if diff := cmp.Diff(want, again); err != nil || diff != "" {
		t.Errorf("second create: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"create dev"}, k.Calls()); diff != "" {
		t.Errorf("calls of kind (-want +got):\n%s", diff)
	}
}

func TestCreateRefusesAClusterFromOtherSettings(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	_, err := open(t, k, folder).Create(t.Context(), document(t, "workers: 0"), kindcluster.Options{}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	k.Calls()
	_, err = open(t, k, folder).Create(t.Context(), document(t, "workers: 1"), kindcluster.Options{}, ui.Discard{})
	var different *kindcluster.DifferentError
	if !errors.As(err, &different) {
		t.Errorf("got %v, want a DifferentError", err)
	}
	if calls := k.Calls(); len(calls) != 0 {
		t.Errorf("kind was called: %v", calls)
	}
}

// TestDifferencesThatAreNotKnown changes the settings in a record to ones that cannot be read.
func TestDifferencesThatAreNotKnown(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	_, err := open(t, k, folder).Create(t.Context(), document(t, ""), kindcluster.Options{}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "dev.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	record["wanted"] = "settings of a later swdt"
	if text, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	err = open(t, k, folder).CheckSettings(document(t, ""))
	var different *kindcluster.DifferentError
	if !errors.As(err, &different) || different.Unknown == nil {
		t.Fatalf("got %v, want a DifferentError whose differences are not known", err)
	}
	if want := "the differences are not known: read the settings of cluster dev in its record: "; !strings.Contains(
		err.Error(), want) {
		t.Errorf("error %q lacks %q", err, want)
	}
}

// A cluster of another tool, or of another user's swdt, is neither changed nor deleted.
func TestClustersOfOthersStay(t *testing.T) {
	k := newFake(t)
	if err := k.Create("dev"); err != nil {
		t.Fatal(err)
	}
	k.Calls()
	clusters := open(t, k, t.TempDir())
	_, err := clusters.Create(t.Context(), document(t, ""), kindcluster.Options{}, ui.Discard{})
	_, deleteErr := clusters.Delete(t.Context(), "dev", ui.Discard{})
	for _, err := range []error{err, deleteErr} {
		var other *kindcluster.OtherToolError
		if !errors.As(err, &other) {
			t.Errorf("got %v, want an OtherToolError", err)
		}
	}
	if calls := k.Calls(); len(calls) != 0 {
		t.Errorf("kind was called: %v", calls)
	}
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	k.Failing = errors.New("kubeadm failed")
	_, err := open(t, k, folder).Create(t.Context(), document(t, ""), kindcluster.Options{}, ui.Discard{})
	if !errors.Is(err, k.Failing) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"create dev", "delete dev"}, k.Calls()); diff != "" {
		t.Errorf("calls of kind (-want +got):\n%s", diff)
	}
	if _, err := open(t, k, folder).Status(t.Context(), "dev"); !errors.Is(err, kindcluster.ErrNoCluster) {
		t.Errorf("status: %v", err)
	}
}

// A create fails in one way, but for two reasons: the runtime has no node image, or it has gone away.
func TestReasonsOfAFailedCreate(t *testing.T) {
	for _, c := range []struct {
		silent error
		image  bool // the error is about the node image
	}{{nil, true}, {errors.New("the daemon is gone"), false}} {
		k := newFake(t)
		k.Failing, k.Silent = errors.New("failed"), c.silent
		_, err := open(t, k, t.TempDir()).Create(t.Context(), document(t, "image: my/node"), kindcluster.Options{}, ui.Discard{})
		var image *kindcluster.ImageError
		if got := errors.As(err, &image); got != c.image || !errors.Is(err, k.Failing) || !errors.Is(err, c.silent) && !c.image {
			t.Errorf("the runtime says %v: about the image: %t: %v", c.silent, got, err)
		}
	}
}

// A container that is being removed already, for example for a swdt that was killed, only delays a delete.
func TestDeleteWaitsForAnotherRemoval(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	killed(t, k, folder)
	k.Busy = 2
	if _, err := open(t, k, folder).Create(t.Context(), document(t, ""), kindcluster.Options{}, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"delete dev", "delete dev", "delete dev", "create dev"}
	if diff := cmp.Diff(want, k.Calls()); diff != "" {
		t.Errorf("calls of kind (-want +got):\n%s", diff)
	}
}

func TestKubeconfigOfAClusterThatKindDoesNotHave(t *testing.T) {
	_, err := open(t, newFake(t), t.TempDir()).Kubeconfig("dev", false)
	if !errors.Is(err, kindcluster.ErrNoCluster) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptedCreateLeavesNothing(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	k.Begun = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-k.Begun
		cancel()
	}()
	_, err := open(t, k, folder).Create(ctx, document(t, ""), kindcluster.Options{}, ui.Discard{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if k.Has("dev") {
		t.Error("the containers are still there")
	}
}

// killed leaves what a killed create leaves: containers, and a record that is not complete.
func killed(t *testing.T, k *kindtest.Kind, folder string) {
	t.Helper()
	k.Failing, k.Stuck = errors.New("killed"), errors.New("killed")
	_, err := open(t, k, folder).Create(t.Context(), document(t, ""), kindcluster.Options{}, ui.Discard{})
	if !errors.Is(err, k.Stuck) || !k.Has("dev") {
		t.Fatalf("create: %v", err)
	}
	k.Failing, k.Stuck = nil, nil
	k.Calls()
}

// After a kill, there is a record, and containers or none: the next create begins again, and
// a delete removes both.
func TestKilledCreateIsMadeAgain(t *testing.T) {
	for _, containers := range []bool{true, false} {
		k, folder := newFake(t), t.TempDir()
		killed(t, k, folder)
		if !containers {
			if err := k.Remove("dev"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := open(t, k, folder).Status(t.Context(), "dev"); err == nil {
			t.Error("status of an incomplete cluster succeeded")
		}
		report, err := open(t, k, folder).Create(t.Context(), document(t, ""), kindcluster.Options{}, ui.Discard{})
		if err != nil || report.Result != fleet.Changed {
			t.Errorf("containers %t: %v, %+v", containers, err, report)
		}
		if diff := cmp.Diff([]string{"delete dev", "create dev"}, k.Calls()); diff != "" {
			t.Errorf("containers %t: calls of kind (-want +got):\n%s", containers, diff)
		}
	}
}

func TestDeleteOfAKilledCreate(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	killed(t, k, folder)
	for _, want := range []string{fleet.Changed, fleet.Unchanged} {
		report, err := open(t, k, folder).Delete(t.Context(), "dev", ui.Discard{})
		if err != nil || report.Result != want {
			t.Errorf("%v, %+v, want %s", err, report, want)
		}
	}
	if k.Has("dev") {
		t.Error("the containers are still there")
	}
}

// hasNetwork reports whether kind's network exists.
func hasNetwork(t *testing.T, k *kindtest.Kind) bool {
	t.Helper()
	has, err := k.HasNetwork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return has
}

// kind's network goes with the cluster that it was made for, and with no other.
func TestNetworkGoesWithTheLastCluster(t *testing.T) {
	k, folder := newFake(t), t.TempDir()
	clusters := open(t, k, folder)
	for _, name := range []string{"one", "two"} {
		if _, err := clusters.Create(t.Context(), documentOf(t, name, ""), kindcluster.Options{}, ui.Discard{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		left bool
	}{{"one", true}, {"two", false}} {
		if _, err := clusters.Delete(t.Context(), step.name, ui.Discard{}); err != nil {
			t.Fatal(err)
		}
		if has := hasNetwork(t, k); has != step.left {
			t.Errorf("after the delete of %s the network exists: %t", step.name, has)
		}
	}
}

func TestNetworkOfOthersStays(t *testing.T) {
	for name, before := range map[string]func(*kindtest.Kind) error{
		"made before": func(k *kindtest.Kind) error { return errors.Join(k.Create("theirs"), k.Remove("theirs")) },
		"in use": func(k *kindtest.Kind) error {
			k.NetworkStuck = errors.New("a container is in it")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newFake(t)
			if err := before(k); err != nil {
				t.Fatal(err)
			}
			clusters := open(t, k, t.TempDir())
			if _, err := clusters.Create(t.Context(), document(t, ""), kindcluster.Options{}, ui.Discard{}); err != nil {
				t.Fatal(err)
			}
			if _, err := clusters.Delete(t.Context(), "dev", ui.Discard{}); err != nil {
				t.Fatal(err)
			}
			if !hasNetwork(t, k) {
				t.Error("the network is gone")
			}
		})
	}
}

// An obstacle is found before kind begins, and named with the line of the file.
func TestCreateFindsWhatIsInTheWay(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	_, port, err := net.SplitHostPort(busy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for fields, want := range map[string]string{
		"apiServerPort: " + port:        "-:4: spec.controlPlane.kind.apiServerPort: nothing can listen at port " + port,
		"apiServerAddress: 203.0.113.7": "-:4: spec.controlPlane.kind.apiServerAddress: nothing can listen at 203.0.113.7",
	} {
		k := newFake(t)
		clusters := open(t, k, t.TempDir())
		_, err := clusters.Create(t.Context(), document(t, fields), kindcluster.Options{}, ui.Discard{})
		_, planned := clusters.Plan(t.Context(), document(t, fields))
		for what, err := range map[string]error{"create": err, "plan": planned} {
			var found *config.Error
			if !errors.As(err, &found) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s: %v, want %s", what, fields, err, want)
			}
		}
		if calls := k.Calls(); len(calls) > 0 {
			t.Errorf("kind was called: %v", calls)
		}
	}
}

func TestOverlappingNetworks(t *testing.T) {
	own := []net.Addr{
		&net.IPNet{IP: net.IPv4(127, 0, 0, 1), Mask: net.CIDRMask(8, 32)},
		&net.IPNet{IP: net.IPv4(10, 244, 3, 9), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.IPv4(192, 168, 1, 5), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)},
	}
	for subnet, want := range map[string]string{
		"10.244.0.0/16": "10.244.0.0/16 overlaps 10.244.3.0/24, a network of your machine",
		"192.0.0.0/8":   "192.0.0.0/8 overlaps 192.168.1.0/24, a network of your machine",
		"10.96.0.0/16":  "",
		"127.0.0.0/8":   "", // validation, not this machine, decides about it
	} {
		problems := kindcluster.CheckSubnet(document(t, ""), "spec.network.podSubnet", subnet, own)
		got := ""
		for _, problem := range problems {
			got += problem.What
		}
		if got != want {
			t.Errorf("%s: %q, want %q", subnet, got, want)
		}
	}
}

// A busy machine may need longer for the control plane than kubeadm's default of 4 minutes.
func TestKubeadmIsPatient(t *testing.T) {
	clusters := open(t, newFake(t), t.TempDir())
	doc := document(t, "apiServerNames: [cp.example]")
	plan, err := clusters.Plan(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	var config v1alpha4.Cluster
	if err := yaml.Unmarshal([]byte(plan.Configuration), &config); err != nil {
		t.Fatal(err)
	}
	// The documents of kubeadm, as far as kind writes them and the patches concern them.
	kubeadm := map[string]string{
		"v1beta3 ClusterConfiguration": `{"apiServer":{"certSANs":["localhost"]}}`,
		"v1beta4 ClusterConfiguration": `{"apiServer":{"certSANs":["localhost"]}}`,
		"v1beta4 InitConfiguration":    `{}`,
	}
	for _, p := range config.KubeadmConfigPatchesJSON6902 {
		patch, err := jsonpatch.DecodePatch([]byte(p.Patch))
		if err != nil {
			t.Fatal(err)
		}
		text, err := patch.Apply([]byte(kubeadm[p.Version+" "+p.Kind]))
		if err != nil {
			t.Fatal(err)
		}
		kubeadm[p.Version+" "+p.Kind] = string(text)
	}
	want := map[string]string{
		"v1beta3 ClusterConfiguration": `{"apiServer":{"certSANs":["localhost","cp.example"],"timeoutForControlPlane":"10m0s"}}`,
		"v1beta4 ClusterConfiguration": `{"apiServer":{"certSANs":["localhost","cp.example"]}}`,
		"v1beta4 InitConfiguration":    `{"timeouts":{"controlPlaneComponentHealthCheck":"10m0s"}}`,
	}
	if diff := cmp.Diff(want, kubeadm); diff != "" {
		t.Errorf("kubeadm's configuration (-want +got):\n%s", diff)
	}
	again, err := clusters.Create(t.Context(), doc, kindcluster.Options{}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if err := clusters.CheckSettings(doc); err != nil || again.Result != fleet.Changed {
		t.Errorf("the limit counts as a difference: %v, %s", err, again.Result)
	}
}

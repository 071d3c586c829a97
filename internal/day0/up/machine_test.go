package up_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kind "sigs.k8s.io/kind/pkg/cluster"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// sideBySide is the time within which two stages that run side by side meet.
const sideBySide = time.Minute

// meeting is a point that two stages reach at the same time: each waits there for the other one.
type meeting struct{ cluster, machine chan struct{} }

// errAlone is the error of a stage that runs while the other one does not.
var errAlone = errors.New("the stages of the cluster and of the VM do not run side by side")

func meet(own, other chan struct{}) error {
	close(own)
	select {
	case <-other:
		return nil
	case <-time.After(sideBySide):
		return errAlone
	}
}

// slowKind is a Kind whose Create waits for the start of the VM.
type slowKind struct {
	kindcluster.Kind
	*meeting
}

func (k slowKind) Create(name string, o ...kind.CreateOption) error {
	if err := meet(k.cluster, k.machine); err != nil {
		return err
	}
	return k.Kind.Create(name, o...)
}

// greeting is a driver whose VMs have an SSH server that only greets, at the forwarded port.
type greeting struct {
	*simulatedvm.Driver
	t    *testing.T
	once sync.Once
}

func (g *greeting) Addresses(ctx context.Context, m vm.Machine) ([]vm.Address, error) {
	all, err := g.Driver.Addresses(ctx, m)
	if err == nil && len(all) > 0 {
		g.once.Do(func() { g.greet(all[0].HostPort()) })
	}
	return all, err
}

func (g *greeting) greet(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		g.t.Errorf("listen as the VM's SSH server: %v", err)
		return
	}
	g.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "SSH-2.0-test\r\n")
			_ = conn.Close()
		}
	}()
}

// One up makes the cluster and the node's VM side by side, and joins the node; a second one finds nothing
// to do; down removes both. kind, the VM, its Windows and the API server are simulated.
func TestUpWithAVM(t *testing.T) {
	w := newWorld(t, inJoin)
	w.control, w.host, w.more = "kind: {}", "", "  machine: {driver: simulated}\n"
	w.join = "controlPlaneEndpoint: '127.0.0.1:" + w.port() + "'"
	doc, documents, err := config.LoadAll([]string{w.file()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &meeting{make(chan struct{}), make(chan struct{})}
	store, err := vm.OpenStore(filepath.Join(w.folder, "vms"))
	if err != nil {
		t.Fatal(err)
	}
	started := sync.OnceValue(func() error { return meet(m.machine, m.cluster) })
	driver := &greeting{t: t, Driver: &simulatedvm.Driver{Fault: func(operation string, _ vm.Machine) error {
		if operation == "start" {
			return started()
		}
		return nil
	}}}
	o := w.options
	o.Only, o.Reporter = nil, func(string) ui.Reporter { return ui.Discard{} }
	o.Confirm = func(context.Context, []string) error { return nil }
	o.Machines = vm.NewMachines(store, "swdt up", driver)
	if o.Clusters, err = kindcluster.New(slowKind{w.kind, m}, filepath.Join(w.folder, "clusters")); err != nil {
		t.Fatal(err)
	}

	report, err := up.Up(t.Context(), doc, documents, o)
	if diff := cmp.Diff([]string{"cluster  changed", "machine win-1 changed", "join win-1 changed"},
		outcomes(report)); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if len(report.Ready) != 1 || report.Ready[0].Node != "win-1" {
		t.Errorf("the times until Ready are %+v", report.Ready)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: filepath.Join(w.folder, "admin.conf")})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || !nodes[0].Ready {
		t.Errorf("the cluster's nodes are %+v, %v", nodes, err)
	}

	report, err = up.Up(t.Context(), doc, documents, o)
	if diff := cmp.Diff([]string{"cluster  unchanged", "machine win-1 unchanged", "join win-1 unchanged"},
		outcomes(report)); err != nil || diff != "" {
		t.Errorf("second up: %v (-want +got):\n%s", err, diff)
	}

	report, err = up.Down(t.Context(), doc, documents, o)
	if diff := cmp.Diff([]string{"machine win-1 changed", "cluster  changed"},
		outcomes(report)); err != nil || diff != "" {
		t.Errorf("down: %v (-want +got):\n%s", err, diff)
	}
	if w.kind.Has("dev") || o.Machines.Exist("win-1") || len(report.Kept) > 0 {
		t.Errorf("left: cluster %t, VM %t, kept %v", w.kind.Has("dev"), o.Machines.Exist("win-1"), report.Kept)
	}
}

// outcomes returns the stages of a report with their nodes and results.
func outcomes(r up.Report) (all []string) {
	for _, s := range r.Stages {
		all = append(all, s.Stage+" "+s.Node+" "+s.Result)
	}
	return all
}

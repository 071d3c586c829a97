package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// The API server accepts a watch from a version that it does not have any more, and sends the error as its only event
// (k8s.io/apiserver v0.36.3, pkg/storage/cacher/cacher.go, Watch).
func TestAWatchFromAnOldVersion(t *testing.T) {
	f := start(t, apiserver.Options{})
	for i := range 6000 {
		f.plant(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {n: '%d'}", i))
	}
	w, err := f.client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "2"})
	if err != nil {
		t.Fatalf("the watch is refused: %v", err)
	}
	defer w.Stop()
	event := <-w.ResultChan()
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("the first event is %s: %v", event.Type, event.Object)
	}
	if event, more := <-w.ResultChan(); more {
		t.Errorf("the watch goes on with %s: %v", event.Type, event.Object)
	}
}

// kubectl prints the cells of a table as they are (kubernetes v1.36.3, pkg/printers/internalversion/printers.go, printNode).
func TestTheTableOfNodes(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: new}")
	f.plant(t, `
apiVersion: v1
kind: Node
metadata: {name: known, labels: {kubernetes.io/role: worker}}
status:
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {kubeletVersion: v1.36.3, osImage: Windows, kernelVersion: 10.0.20348.2849, architecture: amd64}`)
	var table metav1.Table
	if err := f.client.CoreV1().RESTClient().Get().Resource("nodes").SetHeader("Accept",
		"application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(&table); err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for _, row := range table.Rows {
		cells[fmt.Sprint(row.Cells[0])] = fmt.Sprint(row.Cells[1:3], row.Cells[4:])
	}
	for name, want := range map[string]string{
		"known": "[Ready worker] [v1.36.3 <none> <none> Windows 10.0.20348.2849 (amd64) <unknown>]",
		"new":   "[Unknown <none>] [ <none> <none> <unknown> <unknown> <unknown>]",
	} {
		if cells[name] != want {
			t.Errorf("the row of %s is %s, want %s", name, cells[name], want)
		}
	}
}

// A delete whose precondition does not hold (k8s.io/apiserver v0.36.3, pkg/registry/rest/delete.go).
func TestADeleteOfAnotherObject(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.plant(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}")
	uid := types.UID("other")
	err := f.client.CoreV1().ConfigMaps("default").Delete(t.Context(), "m",
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if want := "the UID in the precondition (other) does not match the UID in record ("; !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want a conflict with %q", err, want)
	}
}

// The API server contacts a kubelet at the first address of the types that kubeadm's flag names
// (cmd/kubeadm/app/phases/controlplane/manifests.go, kubelet-preferred-address-types).
func TestTheAddressOfAKubelet(t *testing.T) {
	f := start(t, apiserver.Options{})
	for name, addresses := range map[string]string{
		"internal": "[{type: Hostname, address: a}, {type: InternalIP, address: 10.0.0.1}]",
		"host":     "[{type: Hostname, address: a}]",
		"outside":  "[{type: ExternalDNS, address: b}]",
	} {
		f.plant(t, "apiVersion: v1\nkind: Node\nmetadata: {name: "+name+"}\nstatus: {addresses: "+addresses+"}")
		f.SetKubeletSilent(name, true)
	}
	for name, want := range map[string]string{
		"internal": "dial tcp 10.0.0.1:10250: i/o timeout",
		"host":     "dial tcp a:10250: i/o timeout",
		"outside":  "no preferred addresses found; known addresses: [{ExternalDNS b}]",
	} {
		err := f.client.CoreV1().RESTClient().Get().Resource("nodes").Name(name).SubResource("proxy").Suffix("healthz").
			Do(t.Context()).Error()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

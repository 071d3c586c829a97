package upgradelive_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/cluster/upgradelive"
)

// server is an API server with Windows nodes, whose kubelets answer configz in the form of component-base/configz.
type server struct {
	mu       sync.Mutex
	requests map[string]int // by path

	nodes  []corev1.Node
	sets   []appsv1.DaemonSet
	maps   map[string]map[string]string // by namespace/name
	config string                       // of each kubelet; "": it is forbidden
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.URL.Path]++
	s.mu.Unlock()
	reply := func(object any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object) // it fails only if the client has gone
	}
	switch path := r.URL.Path; {
	case path == "/version":
		reply(map[string]string{"gitVersion": "v1.37.2", "major": "1", "minor": "37"})
	case path == "/api/v1/nodes":
		reply(corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: s.nodes})
	case path == "/apis/apps/v1/daemonsets":
		reply(appsv1.DaemonSetList{TypeMeta: metav1.TypeMeta{Kind: "DaemonSetList", APIVersion: "apps/v1"}, Items: s.sets})
	case strings.HasSuffix(path, "/proxy/configz") && s.config != "":
		_, _ = w.Write([]byte(s.config)) // it fails only if the client has gone
	case strings.HasSuffix(path, "/proxy/configz"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "nodes is forbidden"})
	case strings.Contains(path, "/configmaps/"):
		parts := strings.Split(path, "/")
		data, ok := s.maps[parts[4]+"/"+parts[6]]
		if !ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
				Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
			return
		}
		reply(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: parts[4], Name: parts[6]}, Data: data})
	default:
		http.NotFound(w, r)
	}
}

func newServer(nodes int) *server {
	s := &server{requests: map[string]int{}, maps: map[string]map[string]string{}, config: `{"kubeletconfig":{"maxPods":110}}`}
	for i := range nodes {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("win-%02d", i+1), Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
		n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", ContainerRuntimeVersion: "containerd://2.3.4",
			KernelVersion: "10.0.20348.2762"}
		s.nodes = append(s.nodes, n)
	}
	return s
}

func (s *server) read(t *testing.T, o upgradelive.Options) (upgradecheck.Facts, []string, error) {
	t.Helper()
	listening := httptest.NewUnstartedServer(s)
	listening.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that were opened in advance end with the server
	listening.StartTLS()
	defer listening.Close()
	c, err := cluster.FromConfig(&rest.Config{Host: listening.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	err = upgradelive.Read(t.Context(), c, r, o)
	target, parseErr := upgradecheck.ParseTarget(table, "1.38", "", "")
	if parseErr != nil {
		t.Fatal(parseErr)
	}
	var lines []string
	for _, f := range upgradecheck.Check(table, target, r.Facts) {
		lines = append(lines, fmt.Sprintf("%s %s in %d, first %s", f.Severity, f.Rule, len(f.Places), f.Places[0]))
	}
	return r.Facts, lines, err
}

// Fifty nodes cost one request each, and the cluster a few.
func TestRequestsOfFiftyNodes(t *testing.T) {
	s := newServer(50)
	s.config = `{"kubeletconfig":{"featureGates":{"NodeSwap":true},"cpuManagerPolicy":"none","singleProcessOOMKill":null}}`
	facts, lines, err := s.read(t, upgradelive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for path, count := range s.requests {
		total += count
		if count > 1 {
			t.Errorf("%s was requested %d times", path, count)
		}
	}
	const cluster = 6 // the version, nodes, DaemonSets, two ConfigMaps, and discovery
	if total > 50+cluster || len(facts.Nodes) != 50 {
		t.Errorf("%d requests for %d nodes: %v", total, len(facts.Nodes), s.requests)
	}
	if diff := cmp.Diff([]string{"error gate-unknown in 50, first node win-01, configz"}, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// kube-proxy's DaemonSet for Windows, a ConfigMap with its script, and those of kubeadm.
func TestObjectsOfTheCluster(t *testing.T) {
	s := newServer(1)
	set := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy-windows"}}
	set.Spec.Template.Spec = corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
		Containers: []corev1.Container{{Name: "kube-proxy", Image: "example.com/proxy", Command: []string{"powershell", "-File", `C:\files\run.ps1`}}},
		Volumes: []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "proxy-files"}}}}}}
	other := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	other.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "example.com/x", Args: []string{"--log-dir=/x"}}}}
	s.sets = []appsv1.DaemonSet{set, other}
	s.maps["kube-system/proxy-files"] = map[string]string{"run.ps1": "C:\\k\\kube-proxy.exe --feature-gates=WinDSR=true,WinOverlay=true\n"}
	s.maps["kube-system/kubelet-config"] = map[string]string{"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates: {ExecProbeTimeout: true}\n"}
	facts, lines, err := s.read(t, upgradelive.Options{Nodes: []string{"win-01"}})
	want := []string{
		"error gate-unknown in 1, first ConfigMap kube-system/kubelet-config, data.kubelet",
		"error gate-unknown in 1, first ConfigMap kube-system/proxy-files, data.run.ps1",
		"error gate-unknown in 1, first ConfigMap kube-system/proxy-files, data.run.ps1",
	}
	if diff := cmp.Diff(want, lines); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	if facts.Texts != 3 || facts.Server != "v1.37.2" {
		t.Errorf("%+v", facts)
	}
}

func TestWhatTheUserMayNotRead(t *testing.T) {
	s := newServer(1)
	s.config = ""
	facts, _, err := s.read(t, upgradelive.Options{})
	if err != nil || len(facts.Unread) != 1 || facts.Unread[0].Place.Node != "win-01" || !strings.Contains(facts.Unread[0].Why, "--subresource=proxy") {
		t.Errorf("%v, %+v", err, facts.Unread)
	}
	var none *upgradelive.NoSuchNodeError
	if _, _, err := s.read(t, upgradelive.Options{Nodes: []string{"lin-1"}}); !errors.As(err, &none) {
		t.Errorf("a node that is none: %v", err)
	}
}

package onnode_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
)

// records writes the form of kube-proxy that the cluster has recorded; "": none.
func (o *ordered) records(form cluster.KubeProxyForm) {
	o.t.Helper()
	if form == "" {
		return
	}
	m := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: cluster.KubeProxyRecord},
		Data:       cluster.KubeProxyChoice{Form: form, Network: "calico", HNSNetwork: "Calico", Server: "https://api:6443"}.Data()}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		o.t.Fatal(err)
	}
	resource := o.client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(m.Namespace)
	if _, err := resource.Create(o.t.Context(), &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{}); err != nil {
		o.t.Fatal(err)
	}
}

// labelled labels the Node as swdt join does once it runs the service there.
func (o *ordered) labelled(form cluster.KubeProxyForm) {
	o.t.Helper()
	own := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: map[string]string{"pool": "a", cluster.KubeProxyLabel: string(form)}}}
	put(o, corev1.SchemeGroupVersion.WithResource("nodes"), own.Name, own)
}

// A rollout of the service kube-proxy is refused, before anything is fetched, on a node on which kube-proxy runs in
// another form. A file alone, a rollout of another program, and a cluster without a record are not.
func TestARolloutStartsNoSecondKubeProxy(t *testing.T) {
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": fleettest.Kubelet("v1.31.0", "")})
	kubeProxy := func(service string) fleetv1.Content {
		content := d.Content("good.exe")
		p := &content.Provisioners[0]
		p.Name, p.Service, p.Destination = "kube-proxy", service, `C:\k\kube-proxy.exe`
		return content
	}
	for what, test := range map[string]struct {
		form, label cluster.KubeProxyForm
		content     fleetv1.Content
		refused     string // a part of the refusal; "": the order is carried out
	}{
		"as pods":                {cluster.KubeProxyDaemonSet, "", kubeProxy(""), "in the form daemonset"},
		"as pods, named":         {cluster.KubeProxyDaemonSet, "", kubeProxy("Kube-Proxy"), "`swdt network install calico --kube-proxy service`"},
		"by others":              {cluster.KubeProxyNone, "", kubeProxy(""), "in the form none"},
		"before the join":        {cluster.KubeProxyService, "", kubeProxy(""), "is not set up on this node yet"},
		"after the join":         {cluster.KubeProxyService, cluster.KubeProxyService, kubeProxy(""), ""},
		"the file of pods":       {cluster.KubeProxyDaemonSet, "", kubeProxy(v1alpha1.NoService), ""},
		"kubelet":                {cluster.KubeProxyDaemonSet, "", d.Content("good.exe"), ""},
		"a cluster of no record": {"", "", kubeProxy(""), ""},
	} {
		t.Run(what, func(t *testing.T) {
			o := unordered(t)
			o.records(test.form)
			if test.label != "" {
				o.labelled(test.label)
			}
			for _, release := range []bool{false, true} {
				o.roll(rolling(test.content))
				s := specOf(test.content)
				s.Released = release
				o.writeAnew(s)
				if test.refused != "" {
					o.refused(test.refused)
					continue
				}
				if status := o.carryOut(); status.Phase == fleetv1.PhaseRefused {
					t.Errorf("it is refused: %s", status.Message)
				}
			}
		})
	}
}

package cluster_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
)

func daemonSet(namespace, name string, change ...func(*corev1.PodSpec)) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, c := range change {
		c(&d.Spec.Template.Spec)
	}
	return d
}

func selectsWindows(p *corev1.PodSpec) {
	p.NodeSelector = map[string]string{"kubernetes.io/os": "windows"}
}

func selectsLinux(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"kubernetes.io/os": "linux"} }

func affineToWindows(p *corev1.PodSpec) {
	windows := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpIn, Values: []string{"windows"}},
	}}
	p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{windows},
		},
	}}
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func custom(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	installation = `
apiVersion: operator.tigera.io/v1
kind: Installation
metadata: {name: default}
spec:
  serviceCIDRs: [10.96.0.0/12]
  calicoNetwork: {bgp: Disabled, windowsDataplane: HNS}
`
	pool = `
apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata: {name: default-ipv4-ippool}
spec: {cidr: 192.168.0.0/19, ipipMode: Never, vxlanMode: Always}
`
	strictOld = `
apiVersion: crd.projectcalico.org/v1
kind: IPAMConfig
metadata: {name: default}
spec: {strictAffinity: true}
`
	strictNew = `
apiVersion: projectcalico.org/v3
kind: IPAMConfiguration
metadata: {name: default}
spec: {strictAffinity: true}
`
)

func TestCNI(t *testing.T) {
	operated := func(strict bool) *cluster.Calico {
		return &cluster.Calico{Operator: true, BGP: "Disabled", WindowsDataplane: "HNS",
			ServiceCIDRs: []string{"10.96.0.0/12"}, StrictAffinity: strict,
			Pools: []cluster.IPPool{{Name: "default-ipv4-ippool", CIDR: "192.168.0.0/19", IPIP: "Never",
				VXLAN: "Always"}},
			ServicesEndpoint: true, WindowsDaemonSets: []string{"calico-system/calico-node-windows"}}
	}
	calicoObjects := []runtime.Object{configMap("tigera-operator", "kubernetes-services-endpoint", nil),
		daemonSet("calico-system", "calico-node", selectsLinux),
		daemonSet("calico-system", "calico-node-windows", selectsWindows)}

	for name, test := range map[string]struct {
		objects []runtime.Object
		customs []string
		kinds   bool // the cluster has the custom resources' kinds without any objects
		want    cluster.CNI
	}{
		"nothing": {},
		"Calico of the operator": {objects: calicoObjects,
			customs: []string{installation, pool, strictOld}, want: cluster.CNI{Calico: operated(true)}},
		"Calico's newer API": {objects: calicoObjects,
			customs: []string{installation, pool, strictNew}, want: cluster.CNI{Calico: operated(true)}},
		"Calico that borrows addresses": {objects: calicoObjects, customs: []string{installation, pool},
			want: cluster.CNI{Calico: operated(false)}},
		"Calico of manifests": {objects: []runtime.Object{daemonSet("kube-system", "calico-node",
			selectsLinux)}, want: cluster.CNI{Calico: &cluster.Calico{}}},
		"Calico that has not yet made its pools": {customs: []string{installation},
			want: cluster.CNI{Calico: &cluster.Calico{Operator: true, BGP: "Disabled", WindowsDataplane: "HNS",
				ServiceCIDRs: []string{"10.96.0.0/12"}}}},
		"flannel for Windows": {objects: []runtime.Object{
			configMap("kube-flannel", "kube-flannel-cfg",
				map[string]string{"net-conf.json": `{"Network": "10.244.0.0/16", ` +
					`"Backend": {"Type": "vxlan", "VNI": 4096, "Port": 4789}}`}),
			daemonSet("kube-flannel", "kube-flannel-ds", selectsLinux),
			daemonSet("kube-flannel", "kube-flannel-ds-windows-amd64", affineToWindows)},
			want: cluster.CNI{Flannel: &cluster.Flannel{Namespace: "kube-flannel", Network: "10.244.0.0/16",
				Backend: "vxlan", VNI: 4096, Port: 4789,
				WindowsDaemonSets: []string{"kube-flannel/kube-flannel-ds-windows-amd64"}}}},
		"flannel as it comes": {objects: []runtime.Object{
			configMap("kube-system", "kube-flannel-cfg",
				map[string]string{"net-conf.json": `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`})},
			want: cluster.CNI{Flannel: &cluster.Flannel{Namespace: "kube-system", Network: "10.244.0.0/16",
				Backend: "vxlan", VNI: 1, Port: 8472}}},
		"flannel elsewhere, without an overlay": {objects: []runtime.Object{daemonSet("net", "kube-flannel-ds"),
			configMap("net", "kube-flannel-cfg",
				map[string]string{"net-conf.json": `{"Backend": {"Type": "host-gw"}}`})},
			want: cluster.CNI{Flannel: &cluster.Flannel{Namespace: "net", Backend: "host-gw"}}},
		"Antrea, and kube-proxy": {objects: []runtime.Object{daemonSet("kube-system", "antrea-agent", selectsLinux),
			daemonSet("kube-system", "antrea-agent-windows", selectsWindows),
			daemonSet("kube-system", "kube-proxy", selectsLinux),
			daemonSet("kube-system", "kube-proxy-windows",
				func(p *corev1.PodSpec) { p.OS = &corev1.PodOS{Name: corev1.Windows} })},
			want: cluster.CNI{Antrea: &cluster.Antrea{WindowsDaemonSets: []string{"kube-system/antrea-agent-windows"}},
				KubeProxyWindows: []string{"kube-system/kube-proxy-windows"}, KubeProxyImages: []string{""},
				KubeProxies: []cluster.KubeProxy{{Namespace: "kube-system", Name: "kube-proxy-windows"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			for _, document := range test.customs {
				objects = append(objects, custom(t, document))
			}
			dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), customLists(),
				objects...)
			if len(test.customs) == 0 && !test.kinds {
				noSuchKinds(dynamic)
			}
			c := cluster.FromClients("https://fake:6443", fake.NewClientset(test.objects...), dynamic)
			got, err := c.CNI(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-wanted +got\n%s", diff)
			}
		})
	}
}

// noSuchKinds answers like a cluster that does not have the custom resources' kinds.
func noSuchKinds(d *dynamicfake.FakeDynamicClient) {
	d.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: a.GetResource().Resource}, "")
	})
}

func TestInvalidFlannelConfigurationIsAnError(t *testing.T) {
	c, _ := fakeCluster(configMap("kube-flannel", "kube-flannel-cfg", map[string]string{"net-conf.json": "{"}))
	if got, err := c.CNI(context.Background()); err == nil {
		t.Errorf("CNI = %+v", got)
	}
}

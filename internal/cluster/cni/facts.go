package cni

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Facts are the facts about a cluster that decide about its pod network.
type Facts struct {
	Version      string   // the version of the API server, such as v1.36.3
	ServiceCIDRs []string // the addresses of Services; empty if the cluster does not reveal them
	PodCIDRs     []string // the addresses of pods; empty if the cluster does not reveal them
	// APIServer is the host:port at which the kubelets of all nodes reach the API server; "" if the
	// cluster does not reveal it.
	APIServer string
	Networks  cluster.CNI
	// OtherNetwork describes a pod network that swdt cannot complete for Windows, such as "of
	// DaemonSet kube-system/kindnet"; "" if there is none.
	OtherNetwork string
	// Ours names the DaemonSets that swdt has made, as namespace/name.
	Ours    []string
	Windows []WindowsNode
}

// WindowsNode is a Windows node of the cluster.
type WindowsNode struct {
	Name  string
	Build string // such as 10.0.20348.2849
	// Product is the name of its Windows, such as Windows Server 2022 Datacenter.
	Product string
	// KubeProxy is the form of kube-proxy that swdt join has made there; "" if it has made none.
	KubeProxy cluster.KubeProxyForm
}

// Gather reads the facts. It changes nothing.
func Gather(ctx context.Context, c *cluster.Cluster) (f Facts, err error) {
	for _, read := range []func(context.Context, *cluster.Cluster) error{
		f.readVersion, f.readKubeadm, f.readServiceCIDRs, f.readAPIServer, f.readNetworks, f.readNodes,
	} {
		if err := read(ctx, c); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Ranges returns the address ranges of the cluster's Services and pods; none if the cluster does not reveal them.
func Ranges(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	var f Facts
	for _, read := range []func(context.Context, *cluster.Cluster) error{f.readKubeadm, f.readServiceCIDRs} {
		if err := read(ctx, c); err != nil {
			return nil, err
		}
	}
	return append(f.ServiceCIDRs, f.PodCIDRs...), nil
}

func (f *Facts) readVersion(ctx context.Context, c *cluster.Cluster) (err error) {
	f.Version, err = c.Version(ctx)
	return err
}

// readKubeadm reads the configuration with which kubeadm made the cluster.
func (f *Facts) readKubeadm(ctx context.Context, c *cluster.Cluster) error {
	data, exists, err := configMap(ctx, c, metav1.NamespaceSystem, "kubeadm-config")
	if err != nil || !exists {
		return err
	}
	var configuration struct {
		ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
		Networking           struct {
			ServiceSubnet string `json:"serviceSubnet"`
			PodSubnet     string `json:"podSubnet"`
		} `json:"networking"`
	}
	if err := yaml.Unmarshal([]byte(data["ClusterConfiguration"]), &configuration); err != nil {
		return nil // another program's ConfigMap: the facts are read from elsewhere
	}
	f.ServiceCIDRs = fields(configuration.Networking.ServiceSubnet)
	f.PodCIDRs = fields(configuration.Networking.PodSubnet)
	f.APIServer = usable(configuration.ControlPlaneEndpoint)
	return nil
}

// readServiceCIDRs reads the ServiceCIDR objects, which exist since Kubernetes 1.33. They are
// more reliable than kubeadm's configuration.
func (f *Facts) readServiceCIDRs(ctx context.Context, c *cluster.Cluster) error {
	list, err := c.Clientset().NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return c.Failure("list the addresses of Services", cluster.Permission{Verb: "list",
			Group: networkingv1.GroupName, Resource: "servicecidrs"}, err)
	}
	var all []string
	for _, item := range list.Items {
		for _, cidr := range item.Spec.CIDRs {
			if !slices.Contains(all, cidr) {
				all = append(all, cidr)
			}
		}
	}
	if len(all) > 0 {
		f.ServiceCIDRs = all
	}
	return nil
}

// readAPIServer determines the API server's address if readKubeadm has not found a usable address.
// It reads the address from cluster-info, which kubelets use, or from the endpoints of Service
// kubernetes if other machines cannot use the address in cluster-info.
func (f *Facts) readAPIServer(ctx context.Context, c *cluster.Cluster) error {
	if f.APIServer != "" {
		return nil
	}
	info, err := c.ClusterInfo(ctx)
	if err != nil {
		return err
	}
	if u, err := url.Parse(info.Server); err == nil {
		f.APIServer = usable(u.Host)
	}
	if f.APIServer != "" {
		return nil
	}
	slice, err := c.Clientset().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes",
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (len(slice.Endpoints) == 0 || len(slice.Ports) == 0) {
		return nil
	}
	if err != nil {
		return c.Failure("read the endpoints of Service kubernetes", cluster.Permission{Verb: "get",
			Group: discoveryv1.GroupName, Resource: "endpointslices", Namespace: metav1.NamespaceDefault,
			Name: "kubernetes"}, err)
	}
	if port := slice.Ports[0].Port; port != nil && len(slice.Endpoints[0].Addresses) > 0 {
		f.APIServer = net.JoinHostPort(slice.Endpoints[0].Addresses[0], strconv.Itoa(int(*port)))
	}
	return nil
}

// usable returns address as host:port if other machines can use the address, otherwise "". The
// default port is 6443.
func usable(address string) string {
	if address == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), "6443"
	}
	ip := net.ParseIP(host)
	if strings.EqualFold(host, "localhost") || ip.IsLoopback() || ip.IsUnspecified() {
		return ""
	}
	return net.JoinHostPort(host, port)
}

func (f *Facts) readNetworks(ctx context.Context, c *cluster.Cluster) (err error) {
	if f.Networks, err = c.CNI(ctx); err != nil {
		return err
	}
	list, err := c.Clientset().AppsV1().DaemonSets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return c.Failure("look for the pod network", cluster.Permission{Verb: "list", Group: appsv1.GroupName,
			Resource: "daemonsets", Namespace: metav1.NamespaceSystem}, err)
	}
	for _, d := range list.Items {
		if _, ours := d.Labels[Label]; ours {
			f.Ours = append(f.Ours, d.Namespace+"/"+d.Name)
		}
		calico := d.Name == "calico-node" && (f.Networks.Calico == nil || !f.Networks.Calico.Operator)
		if calico || slices.Contains([]string{"kindnet", "cilium", "weave-net", "kube-router"}, d.Name) {
			f.OtherNetwork = "of DaemonSet " + d.Namespace + "/" + d.Name
		}
	}
	return nil
}

func (f *Facts) readNodes(ctx context.Context, c *cluster.Cluster) error {
	list, err := c.Clientset().CoreV1().Nodes().List(ctx,
		metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=" + string(corev1.Windows)})
	if err != nil {
		return c.Failure("list the Windows nodes", cluster.Permission{Verb: "list", Resource: "nodes"}, err)
	}
	for _, n := range list.Items {
		build, _, _ := strings.Cut(n.Status.NodeInfo.KernelVersion, " ")
		f.Windows = append(f.Windows, WindowsNode{Name: n.Name, Build: build, Product: n.Status.NodeInfo.OSImage,
			KubeProxy: cluster.KubeProxyForm(n.Labels[cluster.KubeProxyLabel])})
	}
	return nil
}

func configMap(ctx context.Context, c *cluster.Cluster, namespace, name string) (map[string]string, bool, error) {
	m, err := c.Clientset().CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, c.Failure("read ConfigMap "+namespace+"/"+name, cluster.Permission{Verb: "get",
			Resource: "configmaps", Namespace: namespace, Name: name}, err)
	}
	return m.Data, true, nil
}

// fields splits a list at its commas.
func fields(list string) (all []string) {
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// errNoHost is returned for an API server's address without a host.
var errNoHost = errors.New("the host is missing")

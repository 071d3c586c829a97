package cni

import (
	"context"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Programs is the state of a pod network's main program in the cluster.
type Programs struct {
	Exists bool
	Ours   bool   // swdt created the program
	Image  string // of its first container
}

// String returns the state for people; "" if the program does not exist.
func (p Programs) String() string {
	switch {
	case !p.Exists:
		return ""
	case p.Ours:
		return p.Image
	}
	return p.Image + ", not installed by swdt"
}

// Version returns the tag of the program's image; "" if the image has no tag.
func (p Programs) Version() string {
	_, tag, _ := strings.Cut(p.Image[strings.LastIndex(p.Image, "/")+1:], ":")
	tag, _, _ = strings.Cut(tag, "@")
	return tag
}

// Programs reads the state of Calico's operator, or of the DaemonSet of flannel or Antrea on Linux.
func (s *Server) Programs(ctx context.Context, n Network) (Programs, error) {
	main := newObject("apps/v1", "Deployment", OperatorNamespace, operatorName)
	switch n {
	case Flannel:
		main = newObject("apps/v1", "DaemonSet", flannelNamespace, flannelDaemonSet)
	case Antrea:
		main = newObject("apps/v1", "DaemonSet", antreaNamespace, antreaAgent)
	}
	live, err := s.Get(ctx, main)
	if err != nil || live == nil {
		return Programs{}, err
	}
	return Programs{Exists: true, Ours: isOurs(live), Image: imageOf(live)}, nil
}

// Keep sets missing settings to those of an earlier installation, so that a run without the flags
// of that installation does not undo them: the API server's address in Calico's or Antrea's
// configuration, the form of kube-proxy, and kube-proxy's image if swdt installed kube-proxy and the image's
// name contains the cluster's version.
func (s *Server) Keep(ctx context.Context, settings Settings, f Facts) (Settings, error) {
	if settings.APIServer == "" && settings.Network == Calico {
		live, err := s.Get(ctx, endpointObject())
		if err != nil {
			return settings, err
		}
		if live != nil {
			host, _, _ := unstructured.NestedString(live.Object, "data", "KUBERNETES_SERVICE_HOST")
			port, _, _ := unstructured.NestedString(live.Object, "data", "KUBERNETES_SERVICE_PORT")
			if host != "" && port != "" {
				settings.APIServer = net.JoinHostPort(host, port)
			}
		}
	}
	if settings.APIServer == "" && settings.Network == Antrea {
		address, err := s.antreaAPIServer(ctx)
		if err != nil {
			return settings, err
		}
		settings.APIServer = address
	}
	if settings.KubeProxy == "" && settings.Network != Antrea { // Antrea replaces kube-proxy
		choice, err := s.cluster.KubeProxyChoice(ctx)
		if err != nil {
			return settings, err
		}
		settings.KubeProxy = choice.Form
	}
	if settings.KubeProxyImage == "" {
		live, err := s.Get(ctx, newObject("apps/v1", "DaemonSet", kubeSystem, kubeProxyName))
		if err != nil {
			return settings, err
		}
		if live != nil && isOurs(live) && keepsImage(imageOf(live), f.Version) {
			settings.KubeProxyImage = imageOf(live)
		}
	}
	return settings, nil
}

// keepsImage reports whether an image of kube-proxy that an earlier installation was given still fits the API server's
// version: its name contains the version, and it exists. If no image is published for the version, the user has named it.
func keepsImage(image, server string) bool {
	if len((cluster.KubeProxy{Image: image, Starts: true}).Faults(server)) > 0 {
		return false
	}
	published := kubeProxyImage(server)
	v, err := version.ParseGeneric(server)
	return err == nil && (published == "" || strings.Contains(image, "v"+v.String()))
}

// imageOf returns the image of a workload's first container.
func imageOf(o *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	image, _ := container["image"].(string)
	return image
}

// isOurs reports whether swdt created an object.
func isOurs(o *unstructured.Unstructured) bool {
	_, ours := o.GetLabels()[Label]
	return ours
}

// Foreign reports whether the cluster has an object of this kind and name that swdt did not create.
func (s *Server) Foreign(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	live, err := s.Get(ctx, o)
	return live != nil && !isOurs(live), err
}

// Installation returns the present configuration of Calico's operator, or nil.
func (s *Server) Installation(ctx context.Context) (*unstructured.Unstructured, error) {
	return s.Get(ctx, installationObject())
}

// Conditions returns the conditions under which a pod network works on Linux nodes and on the
// Windows nodes that the cluster has. kubeProxy is the form of kube-proxy.
func (s *Server) Conditions(n Network, f Facts, kubeProxy cluster.KubeProxyForm) (all []Condition) {
	switch n {
	case Calico:
		all = append(all, s.OperatorAvailable(), s.TigeraStatus("calico"))
	case Flannel:
		all = append(all, s.OnAll(flannelNamespace, flannelDaemonSet))
	case Antrea: // it replaces kube-proxy on Windows nodes
		all, kubeProxy = append(all, s.AntreaController(), s.OnAll(antreaNamespace, antreaAgent)), cluster.KubeProxyNone
	}
	if len(f.Windows) == 0 {
		return all
	}
	switch n {
	case Calico:
		all = append(all, s.TigeraStatus("calico-windows"),
			s.OnWindows("calico-system", "calico-node-windows", f.Windows))
	case Flannel:
		if f.Networks.Flannel != nil {
			for _, set := range f.Networks.Flannel.WindowsDaemonSets {
				namespace, name, _ := strings.Cut(set, "/")
				all = append(all, s.OnWindows(namespace, name, f.Windows))
			}
		}
	case Antrea:
		all = append(all, s.PodAddresses(f.Windows), s.OnWindows(antreaNamespace, antreaWindows, f.Windows))
	}
	if kubeProxy == cluster.KubeProxyDaemonSet {
		all = append(all, s.OnWindows(kubeSystem, kubeProxyName, withoutService(f.Windows)))
	}
	return all
}

// CalicoMinor returns the minor version of the Calico 3 whose operator runs, by the tag of the operator's image; 0 if
// swdt does not know it. The tags are those of manifests/tigera-operator.yaml in the tags of Calico's repository.
func (p Programs) CalicoMinor() int {
	operator, err := version.ParseGeneric(p.Version())
	if err != nil || operator.Major() != 1 {
		return 0
	}
	return map[uint]int{34: 28, 36: 29, 38: 30, 40: 31, 42: 32}[operator.Minor()]
}

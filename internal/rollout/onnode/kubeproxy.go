package onnode

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// kubeProxyService is the Windows service of kube-proxy.
const kubeProxyService = "kube-proxy"

// doubtByKubeProxy returns why the order would start a second kube-proxy on the node: it has a program for the service,
// and the cluster has recorded that kube-proxy runs in another form, or no join has made the service on this node yet. A
// cluster without a record decides nothing.
func (w *order) doubtByKubeProxy(ctx context.Context) (refusal string, err error) {
	if w.state.Spec.Action == fleetv1.ActionRollBack || !slices.ContainsFunc(w.state.Spec.Content.Provisioners, isKubeProxy) {
		return "", nil
	}
	var record corev1.ConfigMap
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	err = w.read(ctx, w.Client.Resource(resource).Namespace(metav1.NamespaceSystem), cluster.KubeProxyRecord, &record)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch choice := cluster.KubeProxyChoiceOf(record.Data); choice.Form {
	case cluster.KubeProxyService:
	case cluster.KubeProxyDaemonSet, cluster.KubeProxyNone:
		return fmt.Sprintf("the cluster runs kube-proxy on Windows nodes in the form %s, and the order has a program for the "+
			"service kube-proxy: %s makes it a service, and service: none in the provisioner only places the file", choice.Form,
			remedy.Command("network", "install", choice.Network, "--kube-proxy", string(cluster.KubeProxyService))), nil
	default:
		return "", nil
	}
	var own corev1.Node
	if err := w.get(ctx, corev1.SchemeGroupVersion.WithResource("nodes"), w.Node, &own); err != nil {
		return "", err
	}
	if own.Labels[cluster.KubeProxyLabel] != string(cluster.KubeProxyService) {
		return fmt.Sprintf("the service kube-proxy is not set up on this node yet, and pods of kube-proxy may run here: %s",
			remedy.Command("join")), nil
	}
	return "", nil
}

// isKubeProxy reports whether a provisioner replaces the program of the service kube-proxy.
func isKubeProxy(p fleetv1.Provisioner) bool {
	name := p.Service
	if name == "" {
		name = p.Name
	}
	return name != v1alpha1.NoService && strings.EqualFold(name, kubeProxyService)
}

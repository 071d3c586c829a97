package cni

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// KubeProxyObjects returns the objects of the chosen form of kube-proxy, and the ConfigMap that records the form if one
// was chosen. The form service has the account and its token, since swdt join makes the rest on each node.
func KubeProxyObjects(w Wanted) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	switch w.KubeProxy {
	case cluster.KubeProxyService:
		all = append(kubeProxyAccount(w), kubeProxyToken(w))
	case "", cluster.KubeProxyDaemonSet:
		all = KubeProxy(w)
	}
	if w.KubeProxy == "" {
		return all
	}
	record := Labelled(newObject("v1", "ConfigMap", kubeSystem, cluster.KubeProxyRecord), w.Network)
	data := map[string]any{}
	for name, value := range w.kubeProxyChoice().Data() {
		data[name] = value
	}
	record.Object["data"] = data
	return append([]*unstructured.Unstructured{record}, all...)
}

func (w Wanted) kubeProxyChoice() cluster.KubeProxyChoice {
	return cluster.KubeProxyChoice{Form: w.KubeProxy, Network: string(w.Network), HNSNetwork: w.Network.HNSName(),
		Server: w.apiServerURL()}
}

func (w Wanted) apiServerURL() string {
	return "https://" + net.JoinHostPort(w.APIServerHost, strconv.Itoa(w.APIServerPort))
}

// kubeProxyToken returns the Secret into which kube-controller-manager writes a token of kube-proxy's account.
func kubeProxyToken(w Wanted) *unstructured.Unstructured {
	secret := Labelled(newObject("v1", "Secret", kubeSystem, cluster.KubeProxyTokenName), w.Network)
	secret.SetAnnotations(map[string]string{corev1.ServiceAccountNameKey: kubeProxyName})
	secret.Object["type"] = string(corev1.SecretTypeServiceAccountToken)
	return secret
}

// OtherKubeProxyForms returns those objects of swdt in the cluster that belong to another form of kube-proxy than the
// chosen one. With force, it also returns objects of these names that swdt has not made. It returns none if no form was
// chosen.
func (s *Server) OtherKubeProxyForms(ctx context.Context, w Wanted, force bool) (found []*unstructured.Unstructured, err error) {
	daemonSet := []*unstructured.Unstructured{newObject("apps/v1", "DaemonSet", kubeSystem, kubeProxyName),
		newObject("v1", "ConfigMap", kubeSystem, kubeProxyName)}
	service := []*unstructured.Unstructured{newObject("v1", "Secret", kubeSystem, cluster.KubeProxyTokenName)}
	var others []*unstructured.Unstructured
	switch w.KubeProxy {
	case cluster.KubeProxyService:
		others = daemonSet
	case cluster.KubeProxyDaemonSet:
		others = service
	case cluster.KubeProxyNone:
		others = append(append(daemonSet, service...), kubeProxyAccount(w)...)
	}
	for _, o := range others {
		live, err := s.Get(ctx, o)
		if err != nil {
			return nil, err
		}
		if live != nil && (force || isOurs(live)) {
			found = append(found, live)
		}
	}
	return found, nil
}

// OtherKubeProxyError reports a DaemonSet of another installer that runs kube-proxy on Windows nodes, beside which the
// service must not run.
type OtherKubeProxyError struct{ KubeProxy cluster.KubeProxy }

func (e *OtherKubeProxyError) Error() string {
	return fmt.Sprintf("make kube-proxy a service: DaemonSet %s/%s runs it on Windows nodes, and two kube-proxies on a node "+
		"remove each other's load balancers; remove the DaemonSet: %s", e.KubeProxy.Namespace, e.KubeProxy.Name, e.remedy())
}

func (e *OtherKubeProxyError) remedy() string {
	if e.KubeProxy.Namespace == kubeSystem && e.KubeProxy.Name == kubeProxyName {
		return remedy.Command("network", "install", "--kube-proxy", string(cluster.KubeProxyService), "--force")
	}
	return remedy.KubectlCommand("delete", "daemonset", e.KubeProxy.Name, "-n", e.KubeProxy.Namespace)
}

// CheckKubeProxyForm returns an *OtherKubeProxyError if the chosen form is the service, and the cluster has a DaemonSet
// of kube-proxy that swdt has not made. With force, swdt removes that of its own name.
func (w Wanted) CheckKubeProxyForm(f Facts, force bool) error {
	if w.KubeProxy != cluster.KubeProxyService {
		return nil
	}
	for _, k := range f.Networks.KubeProxies {
		if !k.Ours && !force || k.Namespace != kubeSystem || k.Name != kubeProxyName {
			return &OtherKubeProxyError{KubeProxy: k}
		}
	}
	return nil
}

// KubeProxyForms returns the condition that each Windows node runs kube-proxy in the chosen form: the label of a Node
// says whether swdt join has made the service there.
func (s *Server) KubeProxyForms(form cluster.KubeProxyForm, nodes []WindowsNode) Condition {
	return Condition{Name: "kube-proxy's form", Look: func(context.Context) error {
		var wrong []string
		for _, n := range nodes {
			if isService := n.KubeProxy == cluster.KubeProxyService; isService != (form == cluster.KubeProxyService) {
				wrong = append(wrong, n.Name)
			}
		}
		switch {
		case len(wrong) == 0:
			return nil
		case form == cluster.KubeProxyService:
			return &NotReadyError{What: "no service kube-proxy yet on " + strings.Join(wrong, ", "),
				Remedy: "make it there: " + remedy.Command("join")}
		}
		return &NotReadyError{What: "kube-proxy is still a service on " + strings.Join(wrong, ", "),
			Remedy: "remove it there: " + remedy.Command("join")}
	}}
}

// withoutService returns the nodes on which kube-proxy is not a service.
func withoutService(nodes []WindowsNode) (others []WindowsNode) {
	for _, n := range nodes {
		if n.KubeProxy != cluster.KubeProxyService {
			others = append(others, n)
		}
	}
	return others
}

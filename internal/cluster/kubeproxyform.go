package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// KubeProxyForm is a way to run kube-proxy on the Windows nodes of a cluster.
type KubeProxyForm string

// The forms. A cluster without a record has the form "": `swdt network install` then makes the DaemonSet.
const (
	KubeProxyService   KubeProxyForm = "service"   // a Windows service, which swdt join makes on each node
	KubeProxyDaemonSet KubeProxyForm = "daemonset" // HostProcess pods
	KubeProxyNone      KubeProxyForm = "none"      // swdt runs none
)

// KubeProxyForms returns the forms that a user may choose.
func KubeProxyForms() []string {
	return []string{string(KubeProxyService), string(KubeProxyDaemonSet), string(KubeProxyNone)}
}

const (
	// KubeProxyRecord is the name of the ConfigMap in kube-system that records the form.
	KubeProxyRecord = "swdt-kube-proxy"
	// KubeProxyName is the name of kube-proxy's DaemonSet and account for Windows, in kube-system.
	KubeProxyName = "kube-proxy-windows"
	// KubeProxyTokenName is the name of the Secret in kube-system with the token of that account, which the form service
	// needs: a service has no kubelet that renews a token for it.
	KubeProxyTokenName = "kube-proxy-windows-token"
	// KubeProxyLabel is the label of a Node on which swdt join runs kube-proxy as a service; its value is the form. The
	// DaemonSet's pods keep off these nodes, so that two kube-proxies never run on one node.
	KubeProxyLabel = "swdt.dev/kube-proxy"
)

// KubeProxyChoice is how kube-proxy runs on the Windows nodes of a cluster, as `swdt network install` has recorded it.
type KubeProxyChoice struct {
	Form       KubeProxyForm // "": nothing is recorded
	Network    string        // the pod network, such as calico
	HNSNetwork string        // its name in the Host Network Service
	Server     string        // the URL at which nodes reach the API server
}

// The fields of the ConfigMap that records the choice.
const (
	kubeProxyFormField    = "form"
	kubeProxyNetworkField = "network"
	kubeProxyHNSField     = "hnsNetwork"
	kubeProxyServerField  = "server"
)

// Data returns the content of the ConfigMap that records the choice.
func (k KubeProxyChoice) Data() map[string]string {
	return map[string]string{kubeProxyFormField: string(k.Form), kubeProxyNetworkField: k.Network,
		kubeProxyHNSField: k.HNSNetwork, kubeProxyServerField: k.Server}
}

// KubeProxyChoice reads the choice. If the cluster has none, the form is "".
func (c *Cluster) KubeProxyChoice(ctx context.Context) (KubeProxyChoice, error) {
	data, _, err := c.configMap(ctx, metav1.NamespaceSystem, KubeProxyRecord)
	if err != nil {
		return KubeProxyChoice{}, err
	}
	return KubeProxyChoiceOf(data), nil
}

// KubeProxyChoiceOf returns the choice in the content of the ConfigMap that records it.
func KubeProxyChoiceOf(data map[string]string) KubeProxyChoice {
	return KubeProxyChoice{Form: KubeProxyForm(data[kubeProxyFormField]), Network: data[kubeProxyNetworkField],
		HNSNetwork: data[kubeProxyHNSField], Server: data[kubeProxyServerField]}
}

// NoKubeProxyTokenError reports that the account of kube-proxy has no token yet.
type NoKubeProxyTokenError struct{}

func (e *NoKubeProxyTokenError) Error() string {
	return fmt.Sprintf("Secret %s/%s has no token yet, which kube-controller-manager makes; `swdt network install` makes "+
		"the Secret", metav1.NamespaceSystem, KubeProxyTokenName)
}

// KubeProxyToken returns the token of kube-proxy's account and the cluster's CA, in PEM. If there is no token yet, the
// error is a *NoKubeProxyTokenError.
func (c *Cluster) KubeProxyToken(ctx context.Context) (token string, ca []byte, err error) {
	secret, err := c.client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, KubeProxyTokenName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil, &NoKubeProxyTokenError{}
	}
	if err != nil {
		return "", nil, c.fail("read the token of kube-proxy", Permission{Verb: "get", Resource: "secrets",
			Namespace: metav1.NamespaceSystem, Name: KubeProxyTokenName}, err)
	}
	token, ca = string(secret.Data[corev1.ServiceAccountTokenKey]), secret.Data[corev1.ServiceAccountRootCAKey]
	if token == "" || len(ca) == 0 {
		return "", nil, &NoKubeProxyTokenError{}
	}
	return token, ca, nil
}

// KubeProxyPods returns the names of the pods of swdt's DaemonSet of kube-proxy on a node.
func (c *Cluster) KubeProxyPods(ctx context.Context, node string) (names []string, err error) {
	list, err := c.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: "k8s-app=" + KubeProxyName,
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, c.fail("look for pods of kube-proxy", Permission{Verb: "list", Resource: "pods",
			Namespace: metav1.NamespaceSystem}, err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

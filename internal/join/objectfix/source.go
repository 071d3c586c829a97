package objectfix

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

// sources returns the tools that have made an object, which would undo a change of it, with what to change instead.
func sources(o *unstructured.Unstructured) (all []string) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	add := func(name, source string) { // names of the cluster are in it, which are one line each
		all = append(all, strings.Join(strings.Fields(name+" would undo the change: "+source), " "))
	}
	// https://helm.sh/docs/chart_best_practices/labels/
	if release := annotations["meta.helm.sh/release-name"]; release != "" || labels["app.kubernetes.io/managed-by"] == "Helm" {
		add("the next `helm upgrade`"+quotedOr(" of ", release), "change the values of the release")
	}
	// https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/
	if id, _, _ := strings.Cut(annotations["argocd.argoproj.io/tracking-id"], ":"); id != "" || labels["argocd.argoproj.io/instance"] != "" {
		if id == "" {
			id = labels["argocd.argoproj.io/instance"]
		}
		add("Argo CD", "change the repository of the application "+id)
	}
	// https://fluxcd.io/flux/faq/#how-do-i-debug-not-ready-errors: both controllers label what they apply
	for _, flux := range [][2]string{{"kustomize.toolkit.fluxcd.io/name", "Kustomization"}, {"helm.toolkit.fluxcd.io/name", "HelmRelease"}} {
		if name := labels[flux[0]]; name != "" {
			add("Flux", "change the source of the "+flux[1]+" "+name)
		}
	}
	// cluster/addons/addon-manager/README.md of kubernetes/kubernetes
	if labels["addonmanager.kubernetes.io/mode"] == "Reconcile" {
		add("the addon manager", "change the manifest of the addon on the control plane")
	}
	// https://docs.k3s.io/installation/packaged-components: objects of wrangler's apply, as in k3s and RKE2
	if owner := annotations["objectset.rio.cattle.io/owner-name"]; owner != "" {
		add("k3s or RKE2", "change the manifest "+owner)
	}
	if network := labels[cni.Label]; network != "" {
		add("`swdt network install "+network+"`", "run it, with a swdt whose kube-proxy starts without the setting")
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		add("the controller of "+owner.Kind+" "+owner.Name, "change that object")
	}
	return all
}

func quotedOr(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// effects returns when a change takes effect.
func effects(o *unstructured.Unstructured) string {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
	switch {
	case o.GetKind() == "ConfigMap" && o.GetName() == "kubelet-config" && o.GetNamespace() == metav1.NamespaceSystem:
		return "nodes that join, and `kubeadm upgrade node`, read it; a running node has a file of its own"
	case o.GetKind() == "ConfigMap":
		return "pods that mount it read it when they start: restart the DaemonSet or Deployment that they belong to"
	case strategy == "OnDelete":
		return "its pods get the change when they are deleted (updateStrategy OnDelete)"
	}
	return "its pods are replaced"
}

package podnetwork_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/wait"
)

// operator stands for Calico's operator. It runs no program of Calico: it holds the settings against
// the demands that the published operator has for Windows nodes, and reports the result in the same
// objects. It also stands for Calico's API server (by a CustomResourceDefinition of its kind) and for
// the kubelets of Windows nodes.
type operator struct {
	c *cluster.Cluster

	mu        sync.Mutex
	imageGone bool // the image of calico-node-windows does not exist for the node's build
}

func (o *operator) set(change func(*operator)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
}

// runOperator starts the stand-in. It ends with the test.
func runOperator(t *testing.T, c *cluster.Cluster) *operator {
	t.Helper()
	o := &operator{c: c}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait.For(ctx, 200*time.Millisecond) == nil {
			if err := o.reconcile(ctx); err != nil && ctx.Err() == nil {
				t.Logf("the operator's stand-in: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return o
}

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

func (o *operator) reconcile(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.endPods(ctx); err != nil {
		return err
	}
	deployments := o.c.Clientset().AppsV1().Deployments("tigera-operator")
	deployment, err := deployments.Get(ctx, "tigera-operator", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if running, err := o.runDeployment(ctx, deployment); err != nil || !running {
		return err
	}
	installation, err := o.c.Dynamic().Resource(gvr("operator.tigera.io", "v1", "installations")).Get(ctx, "default",
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if installation.GetDeletionTimestamp() != nil {
		return o.cleanUp(ctx, installation)
	}
	return errors.Join(o.setDefaults(ctx, installation), o.serveAPI(ctx), o.report(ctx, "calico", ""),
		o.windows(ctx, installation))
}

// endPods ends deleted pods, as their kubelets do.
func (o *operator) endPods(ctx context.Context) error {
	pods, err := o.c.Clientset().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			continue
		}
		now := int64(0)
		err := o.c.Clientset().CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// runDeployment reports the operator's own pod as Ready; the real controller then reports the Deployment
// as available.
func (o *operator) runDeployment(ctx context.Context, d *appsv1.Deployment) (running bool, err error) {
	if d.Status.AvailableReplicas > 0 {
		return true, nil
	}
	pods, err := o.c.Clientset().CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodRunning {
			continue
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.Now()}}
		if _, err := o.c.Clientset().CoreV1().Pods(d.Namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{}); err != nil {
			return false, ignoreConflict(err)
		}
	}
	return false, nil
}

// setDefaults fills in a field of the Installation by an update, as the operator does.
func (o *operator) setDefaults(ctx context.Context, i *unstructured.Unstructured) error {
	if variant, _, _ := unstructured.NestedString(i.Object, "spec", "variant"); variant != "" {
		return nil
	}
	i.SetFinalizers([]string{cleanUpFinalizer})
	if err := unstructured.SetNestedField(i.Object, "Calico", "spec", "variant"); err != nil {
		return err
	}
	pools, _, _ := unstructured.NestedSlice(i.Object, "spec", "calicoNetwork", "ipPools")
	for _, p := range pools {
		p.(map[string]any)["disableBGPExport"] = false
	}
	if len(pools) > 0 {
		if err := unstructured.SetNestedSlice(i.Object, pools, "spec", "calicoNetwork", "ipPools"); err != nil {
			return err
		}
	}
	_, err := o.c.Dynamic().Resource(gvr("operator.tigera.io", "v1", "installations")).Update(ctx, i,
		metav1.UpdateOptions{FieldManager: "operator"})
	return ignoreConflict(err)
}

const cleanUpFinalizer = "tigera.io/operator-cleanup"

// cleanUp removes what the operator has made, and then lets the Installation go.
func (o *operator) cleanUp(ctx context.Context, i *unstructured.Unstructured) error {
	err := o.c.Clientset().AppsV1().DaemonSets("calico-system").Delete(ctx, "calico-node-windows", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	i.SetFinalizers(nil)
	_, err = o.c.Dynamic().Resource(gvr("operator.tigera.io", "v1", "installations")).Update(ctx, i, metav1.UpdateOptions{})
	return ignoreConflict(err)
}

// serveAPI makes the kind that Calico's API server has, once APIServer default exists.
func (o *operator) serveAPI(ctx context.Context) error {
	_, err := o.c.Dynamic().Resource(gvr("operator.tigera.io", "v1", "apiservers")).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return ignoreMissing(err)
	}
	crd := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"ipamconfigurations.projectcalico.org",
		"annotations":{"api-approved.kubernetes.io":"https://github.com/swdt-dev/swdt"}},
		"spec":{"group":"projectcalico.org","scope":"Cluster","names":{"kind":"IPAMConfiguration",
		"plural":"ipamconfigurations","singular":"ipamconfiguration","listKind":"IPAMConfigurationList"},
		"versions":[{"name":"v3","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
		"properties":{"spec":{"type":"object","properties":{"strictAffinity":{"type":"boolean"},
		"autoAllocateBlocks":{"type":"boolean"},"maxBlocksPerHost":{"type":"integer"}}}}}}}]}}`
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(crd)); err != nil {
		return err
	}
	_, err = o.c.Dynamic().Resource(gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions")).Create(ctx, object,
		metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// windows makes calico-node-windows once the settings are those that the operator demands.
func (o *operator) windows(ctx context.Context, i *unstructured.Unstructured) error {
	if missing := o.missing(ctx, i); missing != "" {
		return o.report(ctx, "calico-windows", missing)
	}
	client := o.c.Clientset()
	for _, set := range []struct{ namespace, name string }{
		{"calico-system", "calico-node-windows"}, {"kube-system", "kube-proxy-windows"},
	} {
		if set.namespace == "calico-system" {
			if err := o.makeDaemonSet(ctx); err != nil {
				return err
			}
		}
		d, err := client.AppsV1().DaemonSets(set.namespace).Get(ctx, set.name, metav1.GetOptions{})
		if err != nil {
			return ignoreMissing(err)
		}
		if err := o.runPods(ctx, d); err != nil {
			return err
		}
	}
	return o.report(ctx, "calico-windows", "")
}

// missing returns the demand that is not met, or "".
func (o *operator) missing(ctx context.Context, i *unstructured.Unstructured) string {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(i.Object, append([]string{"spec"}, path...)...)
		return value
	}
	if text("calicoNetwork", "windowsDataplane") != "HNS" {
		return "windowsDataplane is not HNS"
	}
	if text("calicoNetwork", "bgp") != "Disabled" {
		return "bgp is not Disabled"
	}
	if cidrs, _, _ := unstructured.NestedStringSlice(i.Object, "spec", "serviceCIDRs"); len(cidrs) == 0 {
		return "serviceCIDRs is empty"
	}
	pools, _, _ := unstructured.NestedSlice(i.Object, "spec", "calicoNetwork", "ipPools")
	if len(pools) == 0 {
		return "there is no pool"
	}
	if is := pools[0].(map[string]any)["encapsulation"]; is != "VXLAN" && is != "None" {
		return "the first pool's encapsulation is neither VXLAN nor None"
	}
	m, err := o.c.Clientset().CoreV1().ConfigMaps("tigera-operator").Get(ctx, "kubernetes-services-endpoint", metav1.GetOptions{})
	if err != nil || m.Data["KUBERNETES_SERVICE_HOST"] == "" || m.Data["KUBERNETES_SERVICE_PORT"] == "" {
		return "ConfigMap kubernetes-services-endpoint has no address"
	}
	ipam, err := o.c.Dynamic().Resource(gvr("projectcalico.org", "v3", "ipamconfigurations")).Get(ctx, "default",
		metav1.GetOptions{})
	if err == nil {
		if strict, _, _ := unstructured.NestedBool(ipam.Object, "spec", "strictAffinity"); strict {
			return ""
		}
	}
	return "Invalid StrictAffinity, it must be set to 'true'"
}

func (o *operator) makeDaemonSet(ctx context.Context) error {
	client := o.c.Clientset()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "calico-system"}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	labels := map[string]string{"k8s-app": "calico-node-windows"}
	_, err = client.AppsV1().DaemonSets("calico-system").Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "calico-node-windows"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{NodeSelector: map[string]string{"kubernetes.io/os": "windows"},
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: "node", Image: "calico/node-windows:v3.28.5"}}},
		}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// runPods reports the state of a DaemonSet's pods as their kubelets do.
func (o *operator) runPods(ctx context.Context, d *appsv1.DaemonSet) error {
	pods, err := o.c.Clientset().CoreV1().Pods(d.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		container := d.Spec.Template.Spec.Containers[0]
		status := corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		if o.imageGone && d.Namespace == "calico-system" {
			status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name: container.Name, Image: container.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason: "ErrImagePull", Message: "no match for platform in manifest: not found"}},
			}}}
		}
		if p.Status.Phase == status.Phase {
			continue
		}
		p.Status = status
		if _, err := o.c.Clientset().CoreV1().Pods(d.Namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{}); err != nil {
			return ignoreConflict(err)
		}
	}
	return nil
}

// report writes a TigeraStatus; missing is the reason why the part is degraded, or "".
func (o *operator) report(ctx context.Context, part, missing string) error {
	client := o.c.Dynamic().Resource(gvr("operator.tigera.io", "v1", "tigerastatuses"))
	s := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.tigera.io/v1", "kind": "TigeraStatus",
		"metadata": map[string]any{"name": part}}}
	if _, err := client.Create(ctx, s, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	available, degraded := "True", "False"
	if missing != "" {
		available, degraded = "False", "True"
	}
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "ResourceValidationError", "message": missing,
			"lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{
		condition("Available", available), condition("Degraded", degraded), condition("Progressing", "False")}}})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, part, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "could not find the requested resource") {
		return nil
	}
	return err
}

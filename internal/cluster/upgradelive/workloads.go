package upgradelive

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// workloads reads objects with pods of a cluster.
type workloads struct {
	cluster *cluster.Cluster
	reader  *upgradecheck.Reader
	maps    map[string]bool // the ConfigMaps of pods that run a program of Kubernetes, as namespace/name
}

// all reads the objects whose pods run on Windows nodes or run a program of Kubernetes.
func (w *workloads) all(ctx context.Context, o Options) error {
	if err := w.daemonSets(ctx); err != nil {
		return err
	}
	if o.Workloads {
		if err := w.deployments(ctx); err != nil {
			return err
		}
		if err := w.statefulSets(ctx); err != nil {
			return err
		}
	}
	if !o.Pods {
		return nil
	}
	for _, list := range []func(context.Context) error{w.replicaSets, w.replicationControllers, w.cronJobs, w.jobs, w.pods} {
		if err := list(ctx); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			w.reader.Unreadable(upgradecheck.Place{Object: "the cluster"}, err)
		}
	}
	return nil
}

func (w *workloads) daemonSets(ctx context.Context) error {
	err := cluster.Pages(ctx, w.cluster.Clientset().AppsV1().DaemonSets(metav1.NamespaceAll).List, func(page *appsv1.DaemonSetList) {
		for i := range page.Items {
			w.template("DaemonSet", &page.Items[i], page.Items[i].Spec.Template)
		}
	})
	return w.failed("DaemonSets", appsv1.GroupName, "daemonsets", err)
}

func (w *workloads) deployments(ctx context.Context) error {
	err := cluster.Pages(ctx, w.cluster.Clientset().AppsV1().Deployments(metav1.NamespaceAll).List, func(page *appsv1.DeploymentList) {
		for i := range page.Items {
			w.template("Deployment", &page.Items[i], page.Items[i].Spec.Template)
		}
	})
	return w.failed("Deployments", appsv1.GroupName, "deployments", err)
}

func (w *workloads) statefulSets(ctx context.Context) error {
	err := cluster.Pages(ctx, w.cluster.Clientset().AppsV1().StatefulSets(metav1.NamespaceAll).List, func(page *appsv1.StatefulSetList) {
		for i := range page.Items {
			w.template("StatefulSet", &page.Items[i], page.Items[i].Spec.Template)
		}
	})
	return w.failed("StatefulSets", appsv1.GroupName, "statefulsets", err)
}

// replicaSets reads those that no Deployment makes. A set without replicas, such as an old one of a Rollout, needs no image.
func (w *workloads) replicaSets(ctx context.Context) error {
	err := cluster.Pages(ctx, w.cluster.Clientset().AppsV1().ReplicaSets(metav1.NamespaceAll).List, func(page *appsv1.ReplicaSetList) {
		for i := range page.Items {
			if set := &page.Items[i]; !madeBy(set, "Deployment") && (set.Spec.Replicas == nil || *set.Spec.Replicas > 0) {
				w.template("ReplicaSet", set, set.Spec.Template)
			}
		}
	})
	return w.failed("ReplicaSets", appsv1.GroupName, "replicasets", err)
}

func (w *workloads) replicationControllers(ctx context.Context) error {
	list := w.cluster.Clientset().CoreV1().ReplicationControllers(metav1.NamespaceAll).List
	err := cluster.Pages(ctx, list, func(page *corev1.ReplicationControllerList) {
		for i := range page.Items {
			if template := page.Items[i].Spec.Template; template != nil {
				w.template("ReplicationController", &page.Items[i], *template)
			}
		}
	})
	return w.failed("ReplicationControllers", "", "replicationcontrollers", err)
}

func (w *workloads) cronJobs(ctx context.Context) error {
	err := cluster.Pages(ctx, w.cluster.Clientset().BatchV1().CronJobs(metav1.NamespaceAll).List, func(page *batchv1.CronJobList) {
		for i := range page.Items {
			w.template("CronJob", &page.Items[i], page.Items[i].Spec.JobTemplate.Spec.Template)
		}
	})
	return w.failed("CronJobs", batchv1.GroupName, "cronjobs", err)
}

// jobs reads those that no CronJob makes and that have not finished.
func (w *workloads) jobs(ctx context.Context) error {
	err := cluster.Pages(ctx, w.cluster.Clientset().BatchV1().Jobs(metav1.NamespaceAll).List, func(page *batchv1.JobList) {
		for i := range page.Items {
			if job := &page.Items[i]; !madeBy(job, "CronJob") && !finished(job) {
				w.template("Job", job, job.Spec.Template)
			}
		}
	})
	return w.failed("Jobs", batchv1.GroupName, "jobs", err)
}

// finished reports whether a Job has completed or failed, so it makes no more pods.
func finished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}

// pods reads those that have not ended and that no object of the other kinds makes: pods without an owner, static pods, and
// those of kinds that this program does not know.
func (w *workloads) pods(ctx context.Context) error {
	err := cluster.Pages(ctx, w.cluster.Clientset().CoreV1().Pods(metav1.NamespaceAll).List, func(page *corev1.PodList) {
		for i := range page.Items {
			pod := &page.Items[i]
			if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
				madeBy(pod, "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController", "Job") {
				continue
			}
			w.read("Pod", pod, pod.Spec, map[string]any{"spec": pod.Spec})
		}
	})
	return w.failed("Pods", "", "pods", err)
}

// madeBy reports whether the controller of an object is of one of the kinds of Kubernetes. Others have the same names, such as
// the Job of volcano.sh and the DaemonSet of kruise.io.
func madeBy(object metav1.Object, kinds ...string) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && slices.Contains([]string{"v1", "apps/v1", "batch/v1"}, owner.APIVersion) && slices.Contains(kinds, owner.Kind)
}

func (w *workloads) failed(what, group, resource string, err error) error {
	if err == nil {
		return nil
	}
	return w.cluster.Failure("list the "+what, cluster.Permission{Verb: "list", Group: group, Resource: resource}, err)
}

// template reads the pods that an object makes.
func (w *workloads) template(kind string, object metav1.Object, template corev1.PodTemplateSpec) {
	w.read(kind, object, template.Spec, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": template.Spec}}})
}

// read reads an object in the form of a manifest, if its pods matter.
func (w *workloads) read(kind string, object metav1.Object, spec corev1.PodSpec, manifest map[string]any) {
	if !matters(spec) {
		return
	}
	for _, volume := range spec.Volumes {
		if volume.ConfigMap != nil && runsProgram(spec) {
			w.maps[object.GetNamespace()+"/"+volume.ConfigMap.Name] = true
		}
	}
	manifest["kind"], manifest["metadata"] = kind, map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		w.reader.Unreadable(upgradecheck.Place{Object: kind + " " + object.GetNamespace() + "/" + object.GetName()}, err)
		return
	}
	w.reader.Texts++
	w.reader.Documents(text, upgradecheck.Place{})
}

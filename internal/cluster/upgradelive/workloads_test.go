package upgradelive_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/cluster/upgradelive"
)

// about returns the metadata of an object, which a controller of this kind has made; "": none has.
func about(name, controller string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name}
	if controller != "" {
		yes := true
		version, kind, _ := strings.Cut(controller, " ")
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "owner", Controller: &yes}}
	}
	return m
}

func windowsPods(image string) corev1.PodSpec {
	return corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}, Containers: []corev1.Container{{Name: "app", Image: image}}}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: windowsPods(image)}
}

// everyKind has an object of each kind with pods that should be read, and those that should not.
func everyKind() []runtime.Object {
	one, none := int32(1), int32(0)
	ended := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	old := template("not")
	kept := template("controller")
	return []runtime.Object{
		&appsv1.DaemonSet{ObjectMeta: about("daemon", ""), Spec: appsv1.DaemonSetSpec{Template: template("daemon")}},
		&appsv1.Deployment{ObjectMeta: about("deployment", ""), Spec: appsv1.DeploymentSpec{Template: template("deployment")}},
		&appsv1.StatefulSet{ObjectMeta: about("stateful", ""), Spec: appsv1.StatefulSetSpec{Template: template("stateful")}},
		&appsv1.ReplicaSet{ObjectMeta: about("rollout", "argoproj.io/v1alpha1 Rollout"), Spec: appsv1.ReplicaSetSpec{Replicas: &one, Template: template("rollout")}},
		&appsv1.ReplicaSet{ObjectMeta: about("old", "argoproj.io/v1alpha1 Rollout"), Spec: appsv1.ReplicaSetSpec{Replicas: &none, Template: old}},
		&appsv1.ReplicaSet{ObjectMeta: about("of-deployment", "apps/v1 Deployment"), Spec: appsv1.ReplicaSetSpec{Template: old}},
		&corev1.ReplicationController{ObjectMeta: about("controller", ""), Spec: corev1.ReplicationControllerSpec{Template: &kept}},
		&batchv1.CronJob{ObjectMeta: about("cron", ""), Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template("cron")}}}},
		&batchv1.Job{ObjectMeta: about("job", ""), Spec: batchv1.JobSpec{Template: template("job")}},
		&batchv1.Job{ObjectMeta: about("of-cron", "batch/v1 CronJob"), Spec: batchv1.JobSpec{Template: old}},
		&batchv1.Job{ObjectMeta: about("ended", ""), Spec: batchv1.JobSpec{Template: old}, Status: ended},
		&corev1.Pod{ObjectMeta: about("bare", ""), Spec: windowsPods("bare")},
		&corev1.Pod{ObjectMeta: about("static", "v1 Node"), Spec: windowsPods("static")},
		&corev1.Pod{ObjectMeta: about("game", "agones.dev/v1 GameServer"), Spec: windowsPods("game")},
		&corev1.Pod{ObjectMeta: about("volcano", "batch.volcano.sh/v1alpha1 Job"), Spec: windowsPods("volcano")},
		&corev1.Pod{ObjectMeta: about("of-set", "apps/v1 ReplicaSet"), Spec: windowsPods("not")},
		&corev1.Pod{ObjectMeta: about("over", ""), Spec: windowsPods("not"), Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
		&corev1.Pod{ObjectMeta: about("linux", ""), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "not"}}}},
	}
}

// images returns the images that are read, by the object that has them.
func images(t *testing.T, client *fake.Clientset) (map[string]string, []upgradecheck.Unread) {
	t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	c := cluster.FromClients("https://api", client, nil)
	if _, err := upgradelive.ReadImages(t.Context(), c, r, upgradelive.Options{Workloads: true, Pods: true}); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range r.Pods {
		all[p.Place.Object] = strings.Join(p.Images, ",")
	}
	return all, r.Unread
}

func TestEveryKindOfWorkload(t *testing.T) {
	got, unread := images(t, fake.NewClientset(everyKind()...))
	want := map[string]string{"DaemonSet shop/daemon": "daemon", "Deployment shop/deployment": "deployment", "StatefulSet shop/stateful": "stateful",
		"ReplicaSet shop/rollout": "rollout", "ReplicationController shop/controller": "controller", "CronJob shop/cron": "cron",
		"Job shop/job": "job", "Pod shop/bare": "bare", "Pod shop/static": "static", "Pod shop/game": "game", "Pod shop/volcano": "volcano"}
	if diff := cmp.Diff(want, got); diff != "" || len(unread) > 0 {
		t.Errorf("unread %v, -want +got:\n%s", unread, diff)
	}
}

// A user who may not list pods sees the images of the other kinds, and which kind is missing.
func TestAKindThatMayNotBeListed(t *testing.T) {
	client := fake.NewClientset(everyKind()...)
	client.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	})
	got, unread := images(t, client)
	if len(got) != 7 || len(unread) != 1 || !strings.Contains(unread[0].Why, "list the Pods") {
		t.Errorf("%v, %v", got, unread)
	}
}

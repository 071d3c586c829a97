package lintlive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/cluster/lintlive"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// The tests share one control plane, since its start takes most of their time.
func TestLive(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{})
	c, err := cluster.Open(cluster.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("defaults", func(t *testing.T) { defaults(t, c) })
	t.Run("explain", func(t *testing.T) { explains(t, c) })
	t.Run("around", func(t *testing.T) { filesAround(t, c) })
}

// defaults shows that objects which a real API server has completed with its defaults have the findings of the files that
// they were made of, and no others. The examples of the rules are the files.
func defaults(t *testing.T, c *cluster.Cluster) {
	var files, live lint.Reader
	count := 0
	for i, rule := range lint.Rules() {
		for j, example := range []string{rule.Bad, rule.Good} {
			namespace := fmt.Sprintf("lint-%d-%d", i, j)
			if rule.ID == "life-stopsignal" || strings.HasPrefix(rule.ID, "pod-") {
				continue // the API server drops the field, an alpha feature, or the status
			}
			files.Around([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"))
			for _, o := range apply(t, c, namespace, lint.Manifest(example)) {
				files.File("a.yaml", o)
				count++
			}
		}
	}
	if err := lintlive.Read(t.Context(), c, &live, ""); err != nil {
		t.Fatal(err)
	}
	want, got := findings(files.Check(lint.Options{})), findings(live.Check(lint.Options{}))
	if !slices.Equal(got, want) {
		t.Errorf(" live: %s\nfiles: %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if count < 90 || len(got) < 30 {
		t.Errorf("%d objects, %d findings", count, len(got))
	}
	var one lint.Reader
	if err := lintlive.Read(t.Context(), c, &one, "lint-1-1"); err != nil || one.Check(lint.Options{}).Objects > 2 {
		t.Errorf("%v, %d objects of one namespace", err, one.Check(lint.Options{}).Objects)
	}
}

// explains shows what the real controllers and the real scheduler report of a Deployment that no node takes, and of one whose
// pods the API server rejects, and that the reports about another pod are left out.
func explains(t *testing.T, c *cluster.Cluster) {
	options := &corev1.WindowsSecurityContextOptions{HostProcess: ptr.To(true), RunAsUserName: ptr.To(`NT AUTHORITY\SYSTEM`)}
	for _, test := range []struct {
		namespace, enforced string
		spec                corev1.PodSpec
		want                string
	}{
		{"explain-a", "privileged", corev1.PodSpec{}, "pod-unscheduled"},
		{"explain-b", "baseline", corev1.PodSpec{HostNetwork: true, SecurityContext: &corev1.PodSecurityContext{WindowsOptions: options}}, "pod-rejected"},
	} {
		apply(t, c, test.namespace, lint.Manifest("hostname: other"))
		patch := fmt.Sprintf(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%q}}}`, test.enforced)
		if _, err := c.Clientset().CoreV1().Namespaces().Patch(t.Context(), test.namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		test.spec.OS = &corev1.PodOS{Name: corev1.Windows}
		test.spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
		test.spec.Containers = []corev1.Container{{Name: "api", Image: "registry.example/api:v1"}}
		labels := map[string]string{"app": "api"}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "api"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: test.spec}}}
		if _, err := c.Clientset().AppsV1().Deployments(test.namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		subject, err := lintlive.ParseSubject("deploy/api", test.namespace)
		if err != nil {
			t.Fatal(err)
		}
		err = wait.Condition{Name: "the reports of the controllers", Interval: 100 * time.Millisecond, MaxInterval: time.Second, Limit: time.Minute, Look: func(ctx context.Context) error {
			var r lint.Reader
			if err := lintlive.Explain(ctx, c, &r, subject); err != nil {
				return err
			}
			report := r.Check(lint.Options{})
			if of := func(f lint.Finding) bool {
				return f.Rule == test.want && strings.Contains(f.What, test.namespace+"/api")
			}; slices.ContainsFunc(report.Findings, of) {
				for _, f := range report.Findings {
					if strings.Contains(f.What+f.Object, "web") {
						t.Errorf("%s: %+v is about another pod", test.want, f)
					}
				}
				return nil
			}
			return fmt.Errorf("%s", findings(report))
		}}.Wait(t.Context())
		if err != nil {
			t.Error(err)
		}
	}
	subject, _ := lintlive.ParseSubject("ds/none", "explain-a")
	if err := lintlive.Explain(t.Context(), c, new(lint.Reader), subject); !errors.As(err, new(*lintlive.NoSuchObjectError)) {
		t.Errorf("%v", err)
	}
	if _, err := lintlive.ParseSubject("service/web", "explain-a"); !errors.As(err, new(*lintlive.UnknownKindError)) {
		t.Errorf("%v", err)
	}
}

// filesAround shows that the files of a user are held against the nodes of a cluster, whose own objects are not reported.
func filesAround(t *testing.T, c *cluster.Cluster) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1", Labels: map[string]string{corev1.LabelOSStable: "windows"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule}}}}
	if _, err := c.Clientset().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apply(t, c, "other", lint.Manifest("hostNetwork: true"))
	for spec, want := range map[string]string{
		"hostname: a": "none of 1 Windows node takes the pods: win-1 has the taint os=windows:NoSchedule",
		"tolerations: [{key: os, value: windows}]":                       "",
		"nodeSelector: {kubernetes.io/os: windows, pool: a}":             "none of 1 Windows node takes the pods: win-1 does not have the labels",
		"tolerations: [{operator: Exists}]\nnodeName: win-2":             "",
		"tolerations: [{key: os, value: windows, effect: NoExecute}]":    "none of 1 Windows node takes the pods: win-1 has the taint os=windows:NoSchedule",
		"tolerations: [{key: os, operator: Exists, effect: NoSchedule}]": "",
	} {
		var r lint.Reader
		r.File("a.yaml", []byte(lint.Manifest(spec)))
		if err := lintlive.Around(t.Context(), c, &r); err != nil {
			t.Fatal(err)
		}
		report := r.Check(lint.Options{})
		got := ""
		for _, f := range report.Findings {
			if f.Rule == "place-no-node" {
				got = f.What
			}
		}
		if got != want || report.Objects != 1 || report.Texts != 1 {
			t.Errorf("%s: %q, want %q of %d objects", spec, got, want, report.Objects)
		}
	}
}

// apply creates the objects of a text in a new namespace, and returns those that the API server took, as files.
func apply(t *testing.T, c *cluster.Cluster, namespace, text string) (taken [][]byte) {
	t.Helper()
	core := c.Clientset().CoreV1()
	if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := core.ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(text, "---\n") {
		var o unstructured.Unstructured
		if yaml.Unmarshal([]byte(document), &o.Object) != nil {
			continue
		}
		o.SetNamespace(namespace)
		plural := map[string]string{"Pod": "pods", "Service": "services"}[o.GetKind()]
		if plural == "" {
			continue
		}
		file, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		if create(t.Context(), c, namespace, plural, &o) == nil {
			taken = append(taken, file)
		}
	}
	return taken
}

func create(ctx context.Context, c *cluster.Cluster, namespace, plural string, o *unstructured.Unstructured) error {
	_, err := c.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource(plural)).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
	return err
}

// findings returns the rule, the object and the field of each finding.
func findings(r lint.Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.Rule+" "+f.Object+" "+f.Field)
	}
	slices.Sort(all)
	return all
}

// Package lintlive reads the objects of a cluster for package lint. It changes nothing.
package lintlive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/lint"
)

// resource is a kind of objects that lint looks at.
type resource struct {
	schema.GroupVersion
	kind, plural string
	ofCluster    bool // its objects are in no namespace
}

// around returns the kinds that the rules hold pods against: nodes, namespaces, and the DaemonSets of pod networks.
func around() []resource {
	core := corev1.SchemeGroupVersion
	return []resource{{core, "Node", "nodes", true}, {core, "Namespace", "namespaces", true},
		{nodev1.SchemeGroupVersion, "RuntimeClass", "runtimeclasses", true}, {appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets", false}}
}

// judged returns the kinds that hold pods, or that the rules are about.
func judged() []resource {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	return []resource{
		{nodev1.SchemeGroupVersion, "RuntimeClass", "runtimeclasses", true},
		{core, "Pod", "pods", false}, {core, "PodTemplate", "podtemplates", false},
		{core, "ReplicationController", "replicationcontrollers", false}, {core, "Service", "services", false},
		{apps, "Deployment", "deployments", false}, {apps, "ReplicaSet", "replicasets", false},
		{apps, "StatefulSet", "statefulsets", false}, {apps, "DaemonSet", "daemonsets", false},
		{batch, "Job", "jobs", false}, {batch, "CronJob", "cronjobs", false},
		{networkingv1.SchemeGroupVersion, "NetworkPolicy", "networkpolicies", false},
	}
}

// pageSize is the number of objects of one request.
const pageSize = 500

// mostBytes bounds the answer to one request, since the API server may be hostile. Objects have at most some 1.5 MB each,
// and hardly any more than some kB.
const mostBytes = 64 << 20

// mostOfAll bounds the answers about one kind.
const mostOfAll = 256 << 20

// Read hands the objects of a namespace to r; "": of all namespaces. Objects that others make, such as the pods of a
// ReplicaSet, are left out: their maker is read.
func Read(ctx context.Context, c *cluster.Cluster, r *lint.Reader, namespace string) error {
	for _, one := range judged() {
		if err := one.read(ctx, c, namespace, r.Live); err != nil {
			return err
		}
	}
	return Around(ctx, c, r)
}

// Around hands the objects to r that decide about others: r does not check them.
func Around(ctx context.Context, c *cluster.Cluster, r *lint.Reader) error {
	for _, one := range around() {
		if err := one.read(ctx, c, metav1.NamespaceAll, r.Around); err != nil {
			return err
		}
	}
	specs := resource{schema.GroupVersion{Group: "windows.k8s.io", Version: "v1"}, "GMSACredentialSpec", "gmsacredentialspecs", true}
	err := specs.read(ctx, c, metav1.NamespaceAll, r.Around)
	if apierrors.IsNotFound(err) { // the cluster does not have the resource
		return nil
	}
	return err
}

// read hands the objects to take as their authors wrote them, as far as the API server shows that.
func (k resource) read(ctx context.Context, c *cluster.Cluster, namespace string, take func([]byte)) error {
	return k.each(ctx, c, namespace, "", func(o *unstructured.Unstructured) error {
		if metav1.GetControllerOf(o) != nil {
			return nil
		}
		if k.kind != "Node" {
			unstructured.RemoveNestedField(o.Object, "status")
		}
		return hand(o, take)
	})
}

// hand hands an object to take.
func hand(o *unstructured.Unstructured, take func([]byte)) error {
	o.SetManagedFields(nil)
	text, err := json.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("write %s %s as JSON: %w", o.GetKind(), o.GetName(), err)
	}
	take(escaped(text))
	return nil
}

// escaped returns JSON in which the characters that YAML does not allow are escapes.
func escaped(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		if r == 0x7f || r >= 0x80 && r < 0xa0 && r != 0x85 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// each lists the objects of a namespace that a field selector chooses; "": all. A hostile API server can send pages without
// end: the sum of a list is bounded, and each page has to lead to another one.
func (k resource) each(ctx context.Context, c *cluster.Cluster, namespace, fields string, visit func(*unstructured.Unstructured) error) error {
	sum := 0
	for next := ""; ; {
		body, err := k.page(ctx, c, namespace, fields, next)
		var list unstructured.UnstructuredList
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		if err != nil {
			return c.Failure("list the "+k.plural, cluster.Permission{Verb: "list", Group: k.Group, Resource: k.plural, Namespace: namespace}, err)
		}
		for i := range list.Items {
			list.Items[i].SetAPIVersion(k.GroupVersion.String())
			list.Items[i].SetKind(k.kind)
			if err := visit(&list.Items[i]); err != nil {
				return err
			}
		}
		sum += len(body)
		switch more := list.GetContinue(); {
		case more == "":
			return nil
		case more == next || len(list.Items) == 0 || sum > mostOfAll:
			return fmt.Errorf("list the %s: the API server sends more than %d MiB, or pages without an end", k.plural, mostOfAll>>20)
		default:
			next = more
		}
	}
}

// page returns one page of the list of all objects.
func (k resource) page(ctx context.Context, c *cluster.Cluster, namespace, fields, next string) ([]byte, error) {
	at := []string{"/apis", k.Group, k.Version}
	if k.Group == "" {
		at = []string{"/api", k.Version}
	}
	if namespace != "" && !k.ofCluster {
		at = append(at, "namespaces", namespace)
	}
	request := c.Clientset().CoreV1().RESTClient().Get().AbsPath(path.Join(append(at, k.plural)...)).Param("limit", fmt.Sprint(pageSize))
	if fields != "" {
		request.Param("fieldSelector", fields)
	}
	if next != "" {
		request.Param("continue", next)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	body, err := io.ReadAll(io.LimitReader(stream, mostBytes+1))
	if err == nil && len(body) > mostBytes {
		err = fmt.Errorf("the API server sent more than %d MiB for %d objects", mostBytes>>20, pageSize)
	}
	return body, err
}

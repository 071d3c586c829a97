package objectfix

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

// Manager is the field manager of the changes. It is not that of other commands of swdt: an apply removes the fields that
// its manager has applied before and leaves out now.
const Manager = "swdt-upgrade-check"

// leaf is a field that a change may be in. A list of arguments is one field: it has one owner.
type leaf struct {
	name  string // such as data.config.conf, or spec.template.spec.containers[kube-proxy].args
	path  fieldpath.Path
	value any
	// put writes the field into an object to apply.
	put func(o map[string]any, value any)
}

// leaves returns the fields of an object in which settings are, in their order.
func leaves(o *unstructured.Unstructured) (all []leaf) {
	if o.GetKind() == "ConfigMap" {
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		for _, key := range slices.Sorted(maps.Keys(data)) {
			all = append(all, leaf{"data." + key, path("data", key), data[key], func(o map[string]any, value any) {
				child(o, "data")[key] = value
			}})
		}
		return all
	}
	for _, list := range []string{"initContainers", "containers"} {
		found, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", list)
		for _, item := range found {
			container, _ := item.(map[string]any)
			name, _ := container["name"].(string)
			all = append(all, ofContainer(list, name, container)...)
		}
	}
	return all
}

func ofContainer(list, name string, container map[string]any) (all []leaf) {
	at := fmt.Sprintf("spec.template.spec.%s[%s].", list, name)
	within := func(o map[string]any) map[string]any {
		return named(child(o, "spec", "template", "spec"), list, name)
	}
	begin := []any{"spec", "template", "spec", list, key(name)}
	for _, field := range []string{"command", "args"} {
		if value, ok := container[field]; ok {
			all = append(all, leaf{at + field, path(append(slices.Clone(begin), field)...), value, func(o map[string]any, value any) {
				within(o)[field] = value
			}})
		}
	}
	variables, _ := container["env"].([]any)
	for _, item := range variables {
		variable, _ := item.(map[string]any)
		of, _ := variable["name"].(string)
		if value, ok := variable["value"]; ok {
			all = append(all, leaf{at + "env[" + of + "].value", path(append(slices.Clone(begin), "env", key(of), "value")...), value,
				func(o map[string]any, value any) { named(within(o), "env", of)["value"] = value }})
		}
	}
	return all
}

func key(name string) fieldpath.PathElement {
	fields := fieldpath.KeyByFields("name", name)
	return fieldpath.PathElement{Key: fields}
}

func path(parts ...any) fieldpath.Path {
	var all fieldpath.Path
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			all = append(all, fieldpath.PathElement{FieldName: &part})
		case fieldpath.PathElement:
			all = append(all, part)
		}
	}
	return all
}

// child returns the mapping below keys, which it makes.
func child(o map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		below, ok := o[k].(map[string]any)
		if !ok {
			below = map[string]any{}
			o[k] = below
		}
		o = below
	}
	return o
}

// named returns the item of a list with a name, which it makes.
func named(o map[string]any, list, name string) map[string]any {
	items, _ := o[list].([]any)
	for _, item := range items {
		if is, ok := item.(map[string]any); ok && is["name"] == name {
			return is
		}
	}
	is := map[string]any{"name": name}
	o[list] = append(items, is)
	return is
}

// wanted returns the object to apply: the changed fields, and those that an earlier fix has applied, since the API server
// would remove them otherwise. It names the version of the object that the change was made of.
func wanted(live *unstructured.Unstructured, before, after []leaf) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(live.GroupVersionKind())
	o.SetName(live.GetName())
	o.SetNamespace(live.GetNamespace())
	o.SetResourceVersion(live.GetResourceVersion())
	for i, l := range after {
		if !same(before[i].value, l.value) || slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == Manager && cni.FieldsOf(entry).Has(l.path)
		}) {
			l.put(o.Object, l.value)
		}
	}
	return o
}

// owners returns the other managers of a field.
func owners(live *unstructured.Unstructured, l leaf) (all []Owner) {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != Manager && cni.FieldsOf(entry).Has(l.path) {
			all = append(all, Owner{Field: l.name, Manager: entry.Manager, Operation: string(entry.Operation)})
		}
	}
	return all
}

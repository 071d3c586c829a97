package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// wantsTable reports whether a client, such as kubectl get, prefers a table.
func wantsTable(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	return strings.Contains(first, "as=Table")
}

// column is a column of a table; wide columns are printed only with -o wide. The columns of nodes and their cells are
// those of kubernetes v1.36.3, pkg/printers/internalversion/printers.go; pods have fewer columns than there.
type column struct {
	name  string
	wide  bool
	value func(o object) string
}

func (c *Cluster) columns(r Resource) []column {
	path := func(parts ...string) func(object) string {
		return func(o object) string { return orNone(text(o, parts...)) }
	}
	name := column{"Name", false, path("metadata", "name")}
	age := column{"Age", false, c.age}
	switch r.qualified() {
	case "nodes":
		return []column{
			name, {"Status", false, nodeStatus}, {"Roles", false, roles}, age,
			{"Version", false, func(o object) string { return text(o, "status", "nodeInfo", "kubeletVersion") }},
			{"Internal-IP", true, nodeAddress("InternalIP")}, {"External-IP", true, nodeAddress("ExternalIP")},
			{"OS-Image", true, nodeInfo("osImage")}, {"Kernel-Version", true, kernel},
			{"Container-Runtime", true, nodeInfo("containerRuntimeVersion")},
		}
	case "pods":
		return []column{name, {"Status", false, path("status", "phase")}, age, {"Node", true, path("spec", "nodeName")}}
	}
	return []column{name, age}
}

// tableOf converts an object or a list to a table; it returns any other document unchanged.
func (c *Cluster) tableOf(r Resource, document any) any {
	o, ok := document.(object)
	if !ok {
		return document
	}
	items, isList := o["items"].([]any)
	if !isList {
		items = []any{o}
	}
	table := metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
		Rows: []metav1.TableRow{}}
	table.ResourceVersion = text(o, "metadata", "resourceVersion")
	columns := c.columns(r)
	for _, column := range columns {
		definition := metav1.TableColumnDefinition{Name: column.name, Type: "string"}
		if column.wide {
			definition.Priority = 1
		}
		if column.name == "Name" {
			definition.Format = "name"
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, item := range items {
		table.Rows = append(table.Rows, row(columns, item.(object)))
	}
	return table
}

// row returns the row of an object: its values, and its metadata, which kubectl needs for names.
func row(columns []column, o object) metav1.TableRow {
	r := metav1.TableRow{}
	for _, column := range columns {
		r.Cells = append(r.Cells, column.value(o))
	}
	partial, err := json.Marshal(object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
		"metadata": o["metadata"]})
	if err == nil {
		r.Object = runtime.RawExtension{Raw: partial}
	}
	return r
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

func (c *Cluster) age(o object) string {
	created, err := time.Parse(time.RFC3339, text(o, "metadata", "creationTimestamp"))
	if err != nil {
		return "<unknown>"
	}
	return duration.HumanDuration(c.now().Sub(created))
}

func nodeStatus(o object) string {
	status := "NotReady"
	switch ready(o) {
	case "True":
		status = "Ready"
	case "":
		status = "Unknown"
	}
	if field(o, "spec", "unschedulable") == true {
		status += ",SchedulingDisabled"
	}
	return status
}

func roles(o object) string {
	var all []string
	for label, value := range texts(o, "metadata", "labels") {
		role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/")
		if label == "kubernetes.io/role" {
			role, ok = value, true
		}
		if ok && role != "" {
			all = append(all, role)
		}
	}
	slices.Sort(all)
	return orNone(strings.Join(slices.Compact(all), ","))
}

func nodeInfo(name string) func(object) string {
	return func(o object) string { return cmp.Or(text(o, "status", "nodeInfo", name), "<unknown>") }
}

// kernel returns the version of the kernel and, as since Kubernetes 1.36, the architecture.
func kernel(o object) string {
	version := nodeInfo("kernelVersion")(o)
	if architecture := text(o, "status", "nodeInfo", "architecture"); architecture != "" {
		version += " (" + architecture + ")"
	}
	return version
}

func nodeAddress(kind string) func(object) string {
	return func(o object) string {
		addresses, _ := field(o, "status", "addresses").([]any)
		for _, address := range addresses {
			if fields, ok := address.(object); ok && fields["type"] == kind {
				return fmt.Sprint(fields["address"])
			}
		}
		return "<none>"
	}
}

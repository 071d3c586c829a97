package diag

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/wrapper"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Settings adds the settings of the bundle's nodes to r, as nodesettings.Read has those of live nodes, and their pods. It
// records in r as unread each source that the bundle lacks. windows also reads what only an upgrade of Windows changes.
func (b *Bundle) Settings(ctx context.Context, r *upgradecheck.Reader, windows bool, table *kubesettings.Table) error {
	nodes, err := b.stored()
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return &NoBundleError{Path: b.Path, Why: "it has no node; collect it with `swdt diag`"}
	}
	for _, n := range nodes {
		facts, err := n.facts(ctx, windows, table)
		if err != nil {
			why := cmp.Or(n.Error, err.Error())
			facts = upgradecheck.Facts{Nodes: []upgradecheck.Node{{Name: n.Name, Result: upgradecheck.NodeFailed, Read: []string{}, Error: why}},
				Unread: []upgradecheck.Unread{{Place: upgradecheck.Place{Node: n.Name}, Why: why}}}
		}
		for _, name := range slices.Sorted(maps.Keys(n.missing)) {
			facts.Unread = append(facts.Unread, upgradecheck.Unread{Place: upgradecheck.Place{Node: n.Name, Object: name}, Why: n.missing[name]})
		}
		r.Add(facts)
		n.pods(r)
	}
	r.Unreadable(upgradecheck.Place{Object: "ConfigMaps and DaemonSets of the cluster"}, noObjectsError{})
	return nil
}

// noObjectsError reports that no bundle has the objects that are not about one node.
type noObjectsError struct{}

func (noObjectsError) Error() string {
	return "a bundle does not have them; `swdt upgrade check` with a kubeconfig reads them"
}

// The collectors whose results have settings.
const (
	ofServices      = "services"
	ofConfiguration = "configuration"
	ofRegistry      = "registry"
	clusterNode     = "cluster-node"
	clusterPods     = "cluster-pods"
)

// storedNode is a node of a bundle. It is the nodesettings.Source of it.
type storedNode struct {
	NodeRecord
	files map[string]storedFile // of the configuration, by their paths on the node in lower case
	// missing are the tables, and the files by their paths on the node in lower case, that the manifest names and that could
	// not be read, with the reason.
	missing map[string]string

	machine    machineFacts
	services   []serviceRow
	components []componentRow
	registry   []registryRow
	variables  map[string]string
	object     struct {
		Node *corev1.Node `json:"node"`
	}
	podsOn []*corev1.Pod
}

type storedFile struct {
	FileRecord
	content []byte
}

// tables returns the tables that are read, and their values.
func (n *storedNode) tables() map[string]any {
	return map[string]any{"machine": &n.machine, ofServices: &n.services, "components": &n.components, ofRegistry: &n.registry,
		"environment": &n.variables, clusterNode: &n.object, clusterPods: &n.podsOn}
}

const (
	// largestConfiguration is the largest size of a configuration file or script that is read, in bytes.
	largestConfiguration = 4 << 20
	// largestSettings bounds the bytes of all tables and files that are read out of one bundle.
	largestSettings = 256 << 20
)

// entry is a table or a file of a bundle that is wanted.
type entry struct {
	node  *storedNode
	name  string // in storedNode.missing
	limit int64
	take  func([]byte) error
}

// stored reads all nodes in one pass through the bundle. A table or a file that cannot be read is in storedNode.missing.
func (b *Bundle) stored() ([]*storedNode, error) {
	var all []*storedNode
	wanted := map[string]entry{}
	want := func(path string, e entry) {
		wanted[path] = e
		e.node.missing[e.name] = "the manifest names it, and the bundle does not have it"
	}
	for _, record := range b.Manifest.Nodes {
		n := &storedNode{NodeRecord: record, files: map[string]storedFile{}, missing: map[string]string{}}
		all = append(all, n)
		for name, value := range n.tables() {
			if slices.Contains(n.Tables(), name) {
				want(n.table(name, "json"), entry{n, name, largestTable, func(content []byte) error { return json.Unmarshal(content, value) }})
			}
		}
		for _, file := range n.collector(ofConfiguration).Files {
			from := strings.ToLower(file.From)
			want(file.Path, entry{n, from, largestConfiguration, func(content []byte) error {
				n.files[from] = storedFile{file, content}
				return nil
			}})
		}
	}
	left := int64(largestSettings)
	return all, b.each(func(name string, content io.Reader) (bool, error) {
		e, ok := wanted[name]
		if !ok {
			return true, nil
		}
		var text bytes.Buffer
		limit := min(e.limit, left)
		n, err := text.ReadFrom(io.LimitReader(content, limit+1))
		left -= n
		switch {
		case err != nil:
			return false, err
		case n > limit:
			e.node.missing[e.name] = "it is larger than the check reads"
			return true, nil
		}
		if err := e.take(text.Bytes()); err != nil {
			e.node.missing[e.name] = "read it: " + err.Error()
			return true, nil
		}
		delete(e.node.missing, e.name)
		return true, nil
	})
}

// collector returns the record of a collector. One that did not run has no result.
func (r NodeRecord) collector(name string) CollectorRecord {
	for _, c := range r.Collectors {
		if c.Name == name {
			return c
		}
	}
	return CollectorRecord{Error: "its collector did not run"}
}

// facts returns the settings of the node.
func (n *storedNode) facts(ctx context.Context, windows bool, table *kubesettings.Table) (upgradecheck.Facts, error) {
	texts, err := nodesettings.From(ctx, n, nodesettings.Options{Name: n.name(), Windows: windows, Stored: true}, n.Name)
	if err != nil {
		return upgradecheck.Facts{}, err
	}
	about := &texts.Node
	about.Build = n.machine.Build
	if n.object.Node != nil {
		info := n.object.Node.Status.NodeInfo
		about.Kubelet = cmp.Or(about.Kubelet, info.KubeletVersion)
		if runtime, ok := strings.CutPrefix(info.ContainerRuntimeVersion, "containerd://"); ok {
			about.Containerd = cmp.Or(about.Containerd, runtime)
		}
		about.Build = cmp.Or(about.Build, info.KernelVersion)
	} else {
		texts.Unread = append(texts.Unread, upgradecheck.Unread{Place: upgradecheck.Place{Node: about.Name, Object: "Node and pods"},
			Why: n.lacks("cluster").Error()})
	}
	return texts.Facts(table), nil
}

// name returns the node's name in the cluster; "": that of the machine.
func (n *storedNode) name() string {
	if n.object.Node == nil {
		return ""
	}
	return n.object.Node.Name
}

// pods reads the pods of the node, which have the arguments of a kube-proxy that is no service.
func (n *storedNode) pods(r *upgradecheck.Reader) {
	for _, pod := range n.podsOn {
		if pod == nil {
			continue
		}
		text, err := yaml.Marshal(map[string]any{"kind": "Pod", "spec": pod.Spec,
			"metadata": map[string]any{"name": pod.Name, "namespace": pod.Namespace}})
		if err != nil {
			r.Unreadable(upgradecheck.Place{Object: "Pod " + pod.Namespace + "/" + pod.Name}, err)
			continue
		}
		r.Texts++
		r.Documents(text, upgradecheck.Place{Node: n.name()})
	}
}

// A LackError reports something that a bundle does not have.
type LackError struct{ Why string }

func (e *LackError) Error() string { return "the bundle does not have it: " + e.Why }

// A DamageError reports a table or a file of a bundle's manifest that cannot be read.
type DamageError struct{ Why string }

func (e *DamageError) Error() string { return "the bundle is damaged: " + e.Why }

func (n *storedNode) lacks(collector string) error {
	return &LackError{Why: cmp.Or(n.collector(collector).Error, "the collector "+collector+" has no result")}
}

// Components implements nodesettings.Source.
func (n *storedNode) Components(context.Context) (*agentv1.InspectReply, error) {
	if why, ok := n.missing[ofServices]; ok {
		return nil, &DamageError{Why: why}
	}
	if !slices.Contains(n.Tables(), ofServices) {
		return nil, n.lacks(ofServices)
	}
	reply := &agentv1.InspectReply{Facts: &agentv1.FactsReply{Hostname: n.machine.Hostname}}
	for _, name := range []string{"kubelet", "kube-proxy", "containerd"} {
		i := slices.IndexFunc(n.services, func(s serviceRow) bool { return strings.EqualFold(s.Name, name) })
		if i < 0 {
			continue
		}
		line := n.services[i].CommandLine
		program := wrapper.Look(name, line, n)
		c := &agentv1.ComponentState{Name: name, Service: &agentv1.ServiceStatus{Name: name},
			ServiceConfig: &agentv1.ServiceConfig{Name: name, CommandLine: line},
			Program:       &agentv1.ServiceProgram{CommandLine: program.Line, Wrappers: program.Wrappers, Unknown: program.Unknown}}
		for _, row := range n.components {
			if strings.EqualFold(row.Name, name) {
				c.Version = row.Version
			}
		}
		reply.Components = append(reply.Components, c)
	}
	return reply, nil
}

// File implements nodesettings.Source.
func (n *storedNode) File(_ context.Context, at string) ([]byte, error) {
	file, ok := n.files[strings.ToLower(at)]
	why, missing := n.missing[strings.ToLower(at)]
	switch {
	case missing:
		return nil, &DamageError{Why: why}
	case ok && file.Cut != "":
		return nil, &LackError{Why: file.Cut + " is missing"}
	case ok:
		return file.content, nil
	case n.collected(at):
		return nil, fault.ErrNotExist
	case n.collector(ofConfiguration).Result != Done:
		return nil, n.lacks(ofConfiguration)
	}
	return nil, &LackError{Why: "the node has no such file, or no collector reads it"}
}

// Folder implements nodesettings.Source.
func (n *storedNode) Folder(_ context.Context, at string) (files []string, err error) {
	for _, file := range n.files {
		if folder := file.From[:max(strings.LastIndex(file.From, `\`), 0)]; strings.EqualFold(folder, strings.TrimSuffix(at, `\`)) {
			files = append(files, file.From)
		}
	}
	slices.Sort(files)
	if len(files) > 0 {
		return files, nil
	}
	_, err = n.File(context.Background(), strings.TrimSuffix(at, `\`)+`\a.conf`)
	return nil, err
}

// collected reports whether the collector of configurations has looked for a file, and has ended well.
func (n *storedNode) collected(at string) bool {
	if n.collector(ofConfiguration).Result != Done {
		return false
	}
	return slices.ContainsFunc(configurations(), func(pattern string) bool {
		ok, err := path.Match(slashed(pattern), slashed(at))
		return ok && err == nil
	})
}

func slashed(at string) string { return strings.ToLower(strings.ReplaceAll(at, `\`, "/")) }

// Values implements nodesettings.Source.
func (n *storedNode) Values(_ context.Context, key string) (values []*agentv1.RegistryValue, err error) {
	for _, row := range n.registry {
		if !strings.EqualFold(row.Key, key) {
			continue
		}
		v := &agentv1.RegistryValue{Name: row.Name, Type: row.Type, String_: row.Value}
		if number, err := strconv.ParseUint(row.Value, 10, 64); err == nil {
			v.Integer = number
		}
		values = append(values, v)
	}
	switch {
	case len(values) > 0:
		return values, nil
	case n.missing[ofRegistry] != "":
		return nil, &DamageError{Why: n.missing[ofRegistry]}
	case n.collector(ofRegistry).Result != Done:
		return nil, n.lacks(ofRegistry)
	}
	return nil, fmt.Errorf("read %s: %w", key, fault.ErrNotExist)
}

// The methods of wrapper.Machine, which finds the programs behind the services' wrappers.

// value returns a value of the registry.
func (n *storedNode) value(key, name string) (string, bool) {
	for _, row := range n.registry {
		if strings.EqualFold(row.Key, key) && strings.EqualFold(row.Name, name) {
			return row.Value, true
		}
	}
	return "", false
}

const servicesKey = `HKLM\SYSTEM\CurrentControlSet\Services\`

// Parameter implements wrapper.Machine.
func (n *storedNode) Parameter(service, name string) (string, bool) {
	return n.value(servicesKey+service+`\Parameters`, name)
}

// Texts implements wrapper.Machine.
func (n *storedNode) Texts(service, name string) []string {
	key := servicesKey + service
	if below, ok := strings.CutPrefix(name, `Parameters\`); ok {
		key, name = key+`\Parameters`, below
	}
	for _, row := range n.registry {
		if strings.EqualFold(row.Key, key) && strings.EqualFold(row.Name, name) &&
			platform.RegistryType(row.Type) == platform.RegistryMultiString {
			return strings.Split(row.Value, "\n")
		}
	}
	return nil
}

// Variable implements wrapper.Machine. Windows sets some variables for each process, and the bundle lacks them: they have the
// values of a usual installation.
func (n *storedNode) Variable(name string) (string, bool) {
	for is, value := range n.variables {
		if strings.EqualFold(is, name) {
			return value, true
		}
	}
	value, ok := map[string]string{"systemroot": `C:\Windows`, "systemdrive": "C:", "programfiles": `C:\Program Files`,
		"programdata": `C:\ProgramData`}[strings.ToLower(name)]
	return value, ok
}

// ReadFile implements wrapper.Machine.
func (n *storedNode) ReadFile(at string) ([]byte, bool) {
	file, ok := n.files[strings.ToLower(at)]
	return file.content, ok
}

// Exists implements wrapper.Machine.
func (n *storedNode) Exists(at string) bool {
	_, ok := n.files[strings.ToLower(at)]
	return ok || slices.ContainsFunc(n.components, func(c componentRow) bool { return c.Exists && strings.EqualFold(c.Path, at) })
}

package join

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// record lists what swdt put on a machine. swdt writes each entry before it makes the thing. So a
// listed thing may or may not exist, and swdt has not made a thing that is not listed.
type record struct {
	// Node is the name under which the machine joins.
	Node string `json:"node,omitempty"`
	// Joining is set from before the bootstrap token is made until the remains of the join are
	// removed. Joined is set once kubeadm has done its part.
	Joining bool `json:"joining,omitempty"`
	Joined  bool `json:"joined,omitempty"`

	Features []string        `json:"features,omitempty"`
	Folders  []folderRecord  `json:"folders,omitempty"`
	Files    []fileRecord    `json:"files,omitempty"`
	Services []serviceRecord `json:"services,omitempty"`
	Path     []string        `json:"path,omitempty"`
	Hosts    []hostsRecord   `json:"hosts,omitempty"`
	Firewall []string        `json:"firewall,omitempty"`
	// Roots are root certificates that the machine did not trust before.
	Roots []rootRecord `json:"roots,omitempty"`
	// NetworksBefore are the HNS networks before the join; nil: not recorded.
	NetworksBefore *[]networkRecord `json:"networksBefore,omitempty"`
	// PortsBefore are the dynamic TCP ports before the join; nil: the join has not changed them.
	PortsBefore *portRange `json:"portsBefore,omitempty"`
	// SourceVIP is the address that is reserved for kube-proxy; nil: none.
	SourceVIP *reservation `json:"sourceVIP,omitempty"`
	// Ranges are the address ranges of the cluster's Services and pods, if a proxy is set.
	Ranges []string `json:"ranges,omitempty"`
	// Labels has the keys of the labels; Taints has the taints in the node file's
	// format.
	Labels []string `json:"labels,omitempty"`
	Taints []string `json:"taints,omitempty"`

	// Restart are services that were stopped for a change, or still run with the
	// previous configuration, in the order in which they must be started.
	Restart []string `json:"restart,omitempty"`
}

// folderRecord is a folder that the join created.
type folderRecord struct {
	Path string `json:"path"`
	// Data is set if the folder has only data of services that swdt registered. Such a folder is
	// removed with its content. Other folders are removed only when they are empty.
	Data bool `json:"data,omitempty"`
}

// fileRecord is a file that swdt made or replaced.
type fileRecord struct {
	Path string `json:"path"`
	Step string `json:"step"` // the step that made or replaced the file
	// Existed is set if a file of that name existed before. Before is the path of a copy of that
	// file, empty if there is no copy.
	Existed bool   `json:"existed,omitempty"`
	Before  string `json:"before,omitempty"`
}

// serviceRecord is a service that swdt registered, or whose registration swdt replaced.
type serviceRecord struct {
	Name string `json:"name"`
	// Before is the previous registration; nil: there was none.
	Before *registration `json:"before,omitempty"`
	// Variables are the variables of the service's own environment that the join has set.
	Variables []variableRecord `json:"variables,omitempty"`
}

type registration struct {
	CommandLine  string   `json:"commandLine"`
	StartType    string   `json:"startType"`
	Dependencies []string `json:"dependencies,omitempty"`
	DisplayName  string   `json:"displayName,omitempty"`
	Description  string   `json:"description,omitempty"`
	// Recovery is nil if the machine did not report it.
	Recovery *recoveryRecord `json:"recovery,omitempty"`
}

// networkRecord is a network of the Host Network Service.
type networkRecord struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// hostsRecord is a name of the hosts file, and the address that the file gave it before the join;
// empty: the name was not in the file.
type hostsRecord struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
}

// load reads the record; an empty one if there is none.
func load(ctx context.Context, n *node.Node) (record, error) {
	var r record
	content, err := smallfile.Read(ctx, n, layout.JoinRecord)
	if errors.Is(err, fault.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read what swdt put on the machine: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("read what swdt put on the machine: %s is damaged: %w; remove by "+
			"hand everything that the file lists, then the file", layout.JoinRecord, err)
	}
	return r, nil
}

// update changes the record on the node. When it returns without an error, the new record is on the
// node's disk.
func update(ctx context.Context, n *node.Node, change func(*record)) error {
	r, err := load(ctx, n)
	if err != nil {
		return err
	}
	before, err := json.Marshal(r)
	if err != nil {
		return err
	}
	change(&r)
	after, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, after); err != nil || bytes.Equal(compact.Bytes(), before) {
		return err
	}
	if err := smallfile.Replace(ctx, n, layout.JoinRecord, append(after, '\n'), ""); err != nil {
		return fmt.Errorf("write down what swdt puts on the machine: %w", err)
	}
	return nil
}

func (r *record) file(path string) *fileRecord {
	i := slices.IndexFunc(r.Files, func(f fileRecord) bool { return strings.EqualFold(f.Path, path) })
	if i < 0 {
		return nil
	}
	return &r.Files[i]
}

// addFile records a file unless it is already recorded.
func (r *record) addFile(f fileRecord) {
	if r.file(f.Path) == nil {
		r.Files = append(r.Files, f)
	}
}

func (r *record) filesOf(step string) []fileRecord {
	return slices.DeleteFunc(slices.Clone(r.Files), func(f fileRecord) bool { return f.Step != step })
}

func (r *record) dropFiles(step string) {
	r.Files = slices.DeleteFunc(r.Files, func(f fileRecord) bool { return f.Step == step })
}

func (r *record) service(name string) *serviceRecord {
	i := slices.IndexFunc(r.Services, func(s serviceRecord) bool { return strings.EqualFold(s.Name, name) })
	if i < 0 {
		return nil
	}
	return &r.Services[i]
}

func (r *record) dropService(name string) {
	r.Services = slices.DeleteFunc(r.Services, func(s serviceRecord) bool { return strings.EqualFold(s.Name, name) })
}

func (r *record) folder(path string) bool {
	return slices.ContainsFunc(r.Folders, func(f folderRecord) bool { return strings.EqualFold(f.Path, path) })
}

// pending reports whether a service must be restarted.
func (r *record) pending(name string) bool { return containsFold(r.Restart, name) }

// addRestart records that services must be restarted. It adds them after the services that
// are already recorded.
func (r *record) addRestart(names ...string) {
	for _, name := range names {
		if !r.pending(name) {
			r.Restart = append(r.Restart, name)
		}
	}
}

func (r *record) dropRestart(name string) {
	r.Restart = slices.DeleteFunc(r.Restart, func(s string) bool { return strings.EqualFold(s, name) })
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// recordFile is the step that removes the record when everything else is undone.
type recordFile struct{ *joining }

func (s *recordFile) Name() string { return stepRecord }

func (s *recordFile) Plan(context.Context) (plan.Change, error) {
	return plan.Change{}, nil
}

func (s *recordFile) Apply(context.Context, ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, nil
}

func (s *recordFile) PlanUndo(ctx context.Context) (plan.Change, error) {
	there, err := smallfile.Exists(ctx, s.node, layout.JoinRecord)
	if err != nil || !there {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "remove " + layout.JoinRecord}, nil
}

func (s *recordFile) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	if err := removeKubeletRecord(ctx, s.node); err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, smallfile.Remove(ctx, s.node, layout.JoinRecord)
}

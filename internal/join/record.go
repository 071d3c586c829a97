package join

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// record is what swdt put on a machine: each thing is written down before it is
// made, so that one that is written down may or may not be there, and one that
// is not written down is not swdt's.
type record struct {
	// Node is the name that the machine joins under.
	Node string `json:"node,omitempty"`
	// Joining is set from before the bootstrap token is made until all that a
	// join leaves is cleared away; Joined once kubeadm has done its part.
	Joining bool `json:"joining,omitempty"`
	Joined  bool `json:"joined,omitempty"`

	Features []string        `json:"features,omitempty"`
	Folders  []folderRecord  `json:"folders,omitempty"`
	Files    []fileRecord    `json:"files,omitempty"`
	Services []serviceRecord `json:"services,omitempty"`
	Path     []string        `json:"path,omitempty"`
	Hosts    []hostsRecord   `json:"hosts,omitempty"`
	Firewall []string        `json:"firewall,omitempty"`
	// Labels are keys, Taints are as the node file writes them.
	Labels []string `json:"labels,omitempty"`
	Taints []string `json:"taints,omitempty"`

	// Restart are services that run with what has been changed since, or were
	// stopped for it, in the order in which they are to be started.
	Restart []string `json:"restart,omitempty"`
}

// folderRecord is a folder that was not there.
type folderRecord struct {
	Path string `json:"path"`
	// Data is set where all in it is the data of a service of ours: it goes with
	// whatever is in it. Other folders go only when they are empty.
	Data bool `json:"data,omitempty"`
}

// fileRecord is a file that swdt made or replaced.
type fileRecord struct {
	Path string `json:"path"`
	Step string `json:"step"` // whose it is
	// Existed is set where a file of that name stood there before; Before is
	// where its content is kept, empty where it is not.
	Existed bool   `json:"existed,omitempty"`
	Before  string `json:"before,omitempty"`
}

// serviceRecord is a service that swdt registered, or registered anew.
type serviceRecord struct {
	Name string `json:"name"`
	// Before is how somebody else had registered it; nil: not at all.
	Before *registration `json:"before,omitempty"`
}

type registration struct {
	CommandLine  string   `json:"commandLine"`
	StartType    string   `json:"startType"`
	Dependencies []string `json:"dependencies,omitempty"`
}

// hostsRecord is a name of the hosts file and its address before; empty: none.
type hostsRecord struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
}

// load reads the record; an empty one where there is none.
func load(ctx context.Context, n *node.Node) (record, error) {
	var r record
	content, err := smallfile.Read(ctx, n, layout.JoinRecord)
	if errors.Is(err, host.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read what swdt put on the machine: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("read what swdt put on the machine: %s is damaged: %w; remove it, and what it lists by hand", layout.JoinRecord, err)
	}
	return r, nil
}

// update changes the record on the node; it is on the disk when this returns.
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

// addFile writes a file down unless it is already.
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

// pending is whether a service must be restarted.
func (r *record) pending(name string) bool { return containsFold(r.Restart, name) }

// addRestart has services restarted, after those that already are to be.
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

// recordFile is the step that removes the record when all else is taken back.
type recordFile struct{ *joining }

func (s *recordFile) Name() string { return stepRecord }

func (s *recordFile) Plan(context.Context, *node.Node) (plan.Change, error) {
	return plan.Change{}, nil
}

func (s *recordFile) Apply(context.Context, *node.Node, ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, nil
}

func (s *recordFile) PlanUndo(ctx context.Context, n *node.Node) (plan.Change, error) {
	there, err := smallfile.Exists(ctx, n, layout.JoinRecord)
	if err != nil || !there {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "remove " + layout.JoinRecord}, nil
}

func (s *recordFile) Undo(ctx context.Context, n *node.Node, _ ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, smallfile.Remove(ctx, n, layout.JoinRecord)
}

package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// recordVersion is the version of the format in which this swdt writes records.
const recordVersion = 1

// record lists the things that Up has made, or began to make, and that Down removes.
type record struct {
	Version  int      `json:"version"`
	Name     string   `json:"name"` // of the cluster
	Cluster  bool     `json:"cluster"`
	Machines []string `json:"machines"` // VMs
	Nodes    []string `json:"nodes"`    // machines that joined
	// Stages has how far stages of Up have come, by their labels. It only serves estimates.
	Stages map[string]progress `json:"stages,omitempty"`
}

// progress is how far a stage of Up has come since Down last removed the result of the stage; "" if the
// stage has not begun.
type progress string

const (
	begun     progress = "begun" // the run has failed, was interrupted, or still works
	succeeded progress = "succeeded"
)

// forget removes the progress of the stages of a node, or of all stages for "".
func (r *record) forget(node string) {
	maps.DeleteFunc(r.Stages, func(stage string, _ progress) bool {
		return node == "" || slices.ContainsFunc(Kinds(), func(kind string) bool { return stage == label(kind, node) })
	})
}

// empty reports whether there is nothing to remove.
func (r record) empty() bool { return !r.Cluster && len(r.Machines)+len(r.Nodes) == 0 }

// leaves reports whether Down undoes the join of a node. Down does not undo it if it deletes both the
// VM and its cluster. If it deletes only the VM, the cluster would otherwise keep the VM's Node.
func (r record) leaves(node string) bool { return !r.Cluster || !slices.Contains(r.Machines, node) }

// things describes the things that Down removes, in the order in which it removes them.
func (r record) things() (all []string) {
	for _, name := range r.Nodes {
		if r.leaves(name) {
			all = append(all, "the join of "+name)
		}
	}
	for _, name := range r.Machines {
		all = append(all, "VM "+name+" with its disks")
	}
	if r.Cluster {
		all = append(all, "cluster "+r.Name+" with everything in it")
	}
	return all
}

// notes is the record of one cluster, locked against other swdts.
type notes struct {
	path string
	lock *os.File

	mu     sync.Mutex
	record record
}

// BusyError reports that another process makes or removes the same cluster.
type BusyError struct{ Cluster string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another `swdt up` or `swdt down` works on cluster %s: wait until it has ended", e.Cluster)
}

// openNotes locks and reads the record of a cluster. folder is the folder of all records; empty:
// swdt/up in the user's data folder ($XDG_DATA_HOME).
func openNotes(folder, name string) (*notes, error) {
	if folder == "" {
		data, err := localfile.DataFolder()
		if err != nil {
			return nil, err
		}
		folder = filepath.Join(data, "swdt", "up")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of records: %w", err)
	}
	lock, err := localfile.Claim(filepath.Join(folder, name+".lock"))
	if errors.Is(err, localfile.ErrClaimed) {
		return nil, &BusyError{Cluster: name}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the record of cluster %s: %w", name, err)
	}
	n := &notes{
		path: filepath.Join(folder, name+".json"), lock: lock,
		record: record{Version: recordVersion, Name: name, Machines: []string{}, Nodes: []string{}},
	}
	if err := n.read(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return n, nil
}

func (n *notes) read() error {
	text, err := os.ReadFile(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	name := n.record.Name
	if err == nil {
		err = json.Unmarshal(text, &n.record)
	}
	if err == nil && (n.record.Version != recordVersion || n.record.Name != name) {
		err = fmt.Errorf("it is not a record of cluster %s in version %d of the format", name, recordVersion)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w; if nothing of the cluster is left, remove the file", n.path, err)
	}
	return nil
}

func (n *notes) close() error { return n.lock.Close() }

// now returns a copy of the current record.
func (n *notes) now() record {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.record
	r.Machines, r.Nodes, r.Stages = slices.Clone(r.Machines), slices.Clone(r.Nodes), maps.Clone(r.Stages)
	return r
}

// change applies a change to the record and writes the record to its file. If the record has
// become empty, change removes the file instead.
func (n *notes) change(change func(*record)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.record)
	if n.record.empty() {
		if err := os.Remove(n.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the record of cluster %s: %w", n.record.Name, err)
		}
		return nil
	}
	text, err := json.MarshalIndent(n.record, "", "  ")
	if err == nil {
		err = localfile.Replace(n.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record what was made for cluster %s: %w", n.record.Name, err)
	}
	return nil
}

// with returns names with name added, unless names contains it already.
func with(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// without returns names without name. It changes the array of names.
func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

package diag

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options configure the gathering.
type Options struct {
	Profile Profile
	Redact  []string // the user's own patterns, see package redact
	Version string   // of swdt
	// the number of nodes to gather from at a time, at most MostNodes; 0: MostNodes
	Parallel int
	// Timeout limits the gathering from all nodes; the bundle has the results that were
	// gathered until then. 0: no limit.
	Timeout time.Duration
	// NodeTimeout limits the time for one node, including connecting. 0: the constant NodeTimeout.
	NodeTimeout time.Duration
	// CollectorTimeout is the upper bound of the collectors' own deadlines. 0: the
	// collectors keep their deadlines.
	CollectorTimeout time.Duration
	// EventFiles requests that the event channels are also stored as files, which cannot
	// be redacted.
	EventFiles bool
	// Cluster is the cluster of the nodes; nil if no kubeconfig was given.
	Cluster *cluster.Cluster
	// Remedies completes the swdt commands in a text about a node, so that the user can paste them:
	// with the node's name and the flags of this invocation.
	Remedies func(node, text string) string
	// Connect connects to a node; hangUp closes the connection.
	Connect  func(context.Context, config.Document, ui.Reporter) (n *node.Node, hangUp func(), err error)
	Reporter func(config.Document) ui.Reporter
}

// Gather gathers from the nodes and writes the bundle to path. The file at path appears only when
// the bundle is complete. If a node fails, the bundle records the reason. Gather returns an error
// if a pattern of Options.Redact is invalid, if the bundle could not be written, or if ctx ended.
func Gather(ctx context.Context, documents []config.Document, path string, o Options) (Manifest, error) {
	redactor, err := redact.New(o.Redact)
	if err != nil {
		return Manifest{}, err
	}
	staging, err := localfile.Stage(filepath.Dir(path), "."+filepath.Base(path))
	if err != nil {
		return Manifest{}, fmt.Errorf("write the bundle: %w", err)
	}
	root := staging.Path
	defer staging.Remove() // if this fails, the next run removes the folder
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	g := &gathering{options: o, root: root, redactor: redactor, folders: map[string]bool{},
		reading: make(chan struct{}, readers)}
	manifest := Manifest{Format: Format, SWDT: o.Version, Created: time.Now().UTC().Truncate(time.Second),
		Profile: o.Profile.String(), Patterns: len(o.Redact)}
	limited, cancel := o.limited(ctx)
	defer cancel()
	g.owners = askOwners(limited, o)
	results := fleet.Run(limited, documents, min(MostNodes, cmp.Or(o.Parallel, MostNodes)),
		func(ctx context.Context, document config.Document) (NodeRecord, error) {
			return g.node(ctx, document), nil
		})
	if ctx.Err() != nil {
		return manifest, context.Cause(ctx)
	}
	for _, result := range results {
		record := result.Value
		if result.Err != nil { // gathering from the node did not begin in time, or a bug caused a panic
			record = NodeRecord{Name: result.Name(), Result: Failed, Error: result.Err.Error(), Err: result.Err}
		}
		manifest.Nodes = append(manifest.Nodes, record)
	}
	slices.SortStableFunc(manifest.Nodes, func(a, b NodeRecord) int { return natural.Compare(a.Name, b.Name) })
	if err := pack(ctx, root, path, manifest); err != nil {
		return manifest, fmt.Errorf("write the bundle: %w", err)
	}
	return manifest, nil
}

func (o Options) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within --timeout %s: %w", o.Timeout,
		context.DeadlineExceeded))
}

type gathering struct {
	options  Options
	root     string
	redactor *redact.Redactor
	// one element for each file that is being read; the capacity is the constant readers
	reading chan struct{}
	owners  clusterOwners

	mutex   sync.Mutex
	folders map[string]bool // the folders' names in lower case, since some file systems ignore case
}

// node gathers from one node. The record has the name of the node's folder even if nothing was
// gathered. In this case, the bundle has no such folder.
func (g *gathering) node(ctx context.Context, document config.Document) (record NodeRecord) {
	timeout := g.options.NodeTimeout
	if timeout == 0 {
		timeout = NodeTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	record = NodeRecord{Name: document.Node.Metadata.Name, Folder: g.folder(document.Node.Metadata.Name),
		Began: began.UTC(), Result: Failed}
	defer func() { record.Seconds = time.Since(began).Seconds() }()
	reporter := g.options.Reporter(document)
	defer ui.Done(reporter)
	reporter.Step("gathering diagnostics")
	n, hangUp, err := g.options.Connect(limited, document, reporter)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("not reached within %s: %w", timeout, err)
		}
		record.Error, record.Err = g.redactor.String(err.Error()), err
		reporter.Warn("%s", record.Error)
		if g.options.Cluster != nil { // the cluster may show why the node cannot be reached
			record.Collectors, _ = g.visit(nil, document, record.Folder).collect(ctx, []Collector{clusterCollector()})
		}
		return record
	}
	defer hangUp()
	v := g.visit(n, document, record.Folder)
	collectors := within(append(Collectors(), examinations()...), g.options.Profile)
	if g.options.EventFiles {
		collectors = append(collectors, eventFilesCollector())
	}
	record.Collectors, record.Findings = v.collect(limited, collectors)
	record.judge()
	v.describe(&record)
	if record.Result != Whole {
		reporter.Warn("%s", record.Error)
	}
	return record
}

// visit returns the visit of a node; n is nil if the node cannot be reached.
func (g *gathering) visit(n *node.Node, document config.Document, folderName string) *visit {
	return &visit{node: n, document: document, options: g.options, reading: g.reading, owners: g.owners,
		folder: &folder{
			root: g.root, name: folderName, redactor: g.redactor, taken: map[string]bool{},
		}}
}

// judge sets the result of a node from the results of its collectors.
func (r *NodeRecord) judge() {
	failed := 0
	first := ""
	for _, c := range r.Collectors {
		if c.Result == Failed || c.Result == Late {
			if failed++; failed == 1 {
				first = c.Name + ": " + oneLine(c.Error)
			}
		}
	}
	switch failed {
	case 0:
		r.Result = Whole
	case len(r.Collectors):
		r.Result, r.Error = Failed, "nothing could be gathered; "+first
		r.Err = errors.New(r.Error)
	default:
		r.Result, r.Error = Partial, fmt.Sprintf("%d of %d collectors failed; %s", failed, len(r.Collectors), first)
	}
}

// describe sets the fields Windows and Simulated from the table of the collector "machine".
func (v *visit) describe(record *NodeRecord) {
	var facts machineFacts
	content, err := os.ReadFile(filepath.Join(v.folder.root, filepath.FromSlash(record.table("machine", "json"))))
	if err == nil && json.Unmarshal(content, &facts) == nil {
		record.Windows, record.Simulated = facts.Product+" "+facts.Build, facts.Simulated
	}
}

// folder returns a unique name for the node's folder in the bundle.
func (g *gathering) folder(name string) string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	folder := "nodes/" + safeName(name)
	for n := 2; g.folders[strings.ToLower(folder)]; n++ {
		folder = fmt.Sprintf("nodes/%s (%d)", safeName(name), n)
	}
	g.folders[strings.ToLower(folder)] = true
	return folder
}

// pack writes the bundle under a temporary name, and renames it when it is complete.
func pack(ctx context.Context, root, path string, manifest Manifest) error {
	content, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, manifestName), append(content, '\n'), 0o600); err != nil {
		return err
	}
	if err := writePage(filepath.Join(root, pageName), root, manifest); err != nil {
		return err
	}
	packed, err := os.CreateTemp(root, "bundle-")
	if err != nil {
		return err
	}
	defer os.Remove(packed.Name()) // there is nothing to remove after the rename
	err = archive(ctx, packed, root, folderOf(path), manifest)
	if err = errors.Join(err, packed.Sync(), packed.Close()); err != nil {
		return err
	}
	return os.Rename(packed.Name(), path)
}

// pageName is the path of the page in a bundle.
const pageName = "index.html"

// folderOf returns the folder into which a bundle unpacks, named as the bundle.
func folderOf(bundle string) string {
	name := filepath.Base(bundle)
	for _, extension := range []string{".gz", ".tar", ".tgz"} {
		name = strings.TrimSuffix(name, extension)
	}
	return safeName(name)
}

// archive writes the manifest first, then the page, then the nodes' files, all below one folder.
func archive(ctx context.Context, w io.Writer, root, folder string, manifest Manifest) error {
	zipped := gzip.NewWriter(w)
	tape := tar.NewWriter(zipped)
	add := func(name string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return addFile(tape, root, folder, name, manifest.Created)
	}
	if err := errors.Join(add(manifestName), add(pageName)); err != nil {
		return err
	}
	err := filepath.WalkDir(filepath.Join(root, "nodes"), func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // nothing was gathered from any node
		}
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return add(filepath.ToSlash(name))
	})
	return errors.Join(err, tape.Close(), zipped.Close())
}

func addFile(tape *tar.Writer, root, folder, name string, modified time.Time) error {
	file, err := os.Open(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: folder + "/" + name, Mode: 0o600, Size: info.Size(), ModTime: modified, Typeflag: tar.TypeReg}
	if err := tape.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(tape, file)
	return err
}

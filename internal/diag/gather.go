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
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/redact"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options say what is gathered.
type Options struct {
	Profile  Profile
	Redact   []string // patterns of the person's own, see package redact
	Version  string   // of swdt
	Parallel int      // nodes at a time, at most MostNodes; 0: so many
	// Timeout bounds the gathering of all nodes; what is there by then becomes the
	// bundle. 0: none.
	Timeout time.Duration
	// NodeTimeout bounds all of one node, connecting too. 0: NodeTimeout.
	NodeTimeout time.Duration
	// CollectorTimeout shortens the collectors' own. 0: those.
	CollectorTimeout time.Duration
	// EventFiles keeps the event channels as files too, which cannot be redacted.
	EventFiles bool
	// Cluster is that of the nodes; nil where none is at hand.
	Cluster *cluster.Cluster
	// More collectors, of what stands above this package.
	More []Collector
	// Connect reaches a node; hang up with the function.
	Connect  func(context.Context, config.Document, ui.Reporter) (n *node.Node, hangUp func(), err error)
	Reporter func(config.Document) ui.Reporter
}

// Gather asks the nodes and writes the bundle, which has that name only when it is
// whole. A node that fails is in it with its reason; err is for a bundle that
// could not be made, and for ctx.
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
	defer staging.Remove() // a folder that stays is removed by the next run
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	g := &gathering{options: o, root: root, redactor: redactor, folders: map[string]bool{}, reading: make(chan struct{}, readers)}
	manifest := Manifest{Format: Format, SWDT: o.Version, Created: time.Now().UTC().Truncate(time.Second), Profile: o.Profile.String(), Patterns: len(o.Redact)}
	limited, cancel := o.limited(ctx)
	defer cancel()
	g.owners = askOwners(limited, o)
	results := fleet.Run(limited, documents, min(MostNodes, cmp.Or(o.Parallel, MostNodes)), func(ctx context.Context, document config.Document) (NodeRecord, error) {
		return g.node(ctx, document), nil
	})
	if ctx.Err() != nil {
		return manifest, context.Cause(ctx)
	}
	for _, result := range results {
		record := result.Value
		if result.Err != nil { // not begun in time, or a bug's panic
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
	return context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within --timeout %s: %w", o.Timeout, context.DeadlineExceeded))
}

type gathering struct {
	options  Options
	root     string
	redactor *redact.Redactor
	reading  chan struct{} // one for each file that is being read
	owners   owners

	mutex   sync.Mutex
	folders map[string]bool // in lower case: some disks do not tell them apart
}

// node gathers one node's part. Its folder is there also where there is nothing.
func (g *gathering) node(ctx context.Context, document config.Document) (record NodeRecord) {
	timeout := g.options.NodeTimeout
	if timeout == 0 {
		timeout = NodeTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	record = NodeRecord{Name: document.Node.Metadata.Name, Folder: g.folder(document.Node.Metadata.Name), Began: began.UTC(), Result: Failed}
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
		if g.options.Cluster != nil { // which may know why
			record.Collectors, _ = g.visit(nil, document, record.Folder).collect(ctx, []Collector{clusterCollector()})
		}
		return record
	}
	defer hangUp()
	v := g.visit(n, document, record.Folder)
	collectors := within(append(Collectors(), g.options.More...), g.options.Profile)
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

// visit of a node; n is nil where it cannot be reached.
func (g *gathering) visit(n *node.Node, document config.Document, folderName string) *visit {
	return &visit{node: n, document: document, options: g.options, reading: g.reading, owners: g.owners, folder: &folder{
		root: g.root, name: folderName, redactor: g.redactor, taken: map[string]bool{},
	}}
}

// judge sums the collectors up.
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

// describe takes what the summary shows from what was gathered.
func (v *visit) describe(record *NodeRecord) {
	var facts machineFacts
	content, err := os.ReadFile(filepath.Join(v.folder.root, filepath.FromSlash(record.table("machine", "json"))))
	if err == nil && json.Unmarshal(content, &facts) == nil {
		record.Windows, record.Simulated = facts.Product+" "+facts.Build, facts.Simulated
	}
}

// folder is a name of its own for each node, in the bundle.
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

// pack makes the bundle under another name, and gives it its own when it is whole.
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
	defer os.Remove(packed.Name()) // gone already, unless something failed
	err = archive(ctx, packed, root, manifest)
	if err = errors.Join(err, packed.Sync(), packed.Close()); err != nil {
		return err
	}
	return os.Rename(packed.Name(), path)
}

// pageName is where the page is in a bundle.
const pageName = "index.html"

// archive writes the manifest first, then the page, then the nodes' files.
func archive(ctx context.Context, w io.Writer, root string, manifest Manifest) error {
	zipped := gzip.NewWriter(w)
	tape := tar.NewWriter(zipped)
	add := func(name string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return addFile(tape, root, name, manifest.Created)
	}
	if err := errors.Join(add(manifestName), add(pageName)); err != nil {
		return err
	}
	err := filepath.WalkDir(filepath.Join(root, "nodes"), func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // no node was reached
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

func addFile(tape *tar.Writer, root, name string, modified time.Time) error {
	file, err := os.Open(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: modified, Typeflag: tar.TypeReg}
	if err := tape.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(tape, file)
	return err
}

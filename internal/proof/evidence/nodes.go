package evidence

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui"
)

// reader reads logs and diagnostics of nodes. It keeps its connections until close is called.
type reader struct {
	options Options
	c       *cluster.Cluster
	open    map[string]connection // by the name of the node file
}

type connection struct {
	node   *node.Node
	hangUp func()
	err    error
}

func newReader(c *cluster.Cluster, o Options) *reader {
	return &reader{options: o, c: c, open: map[string]connection{}}
}

func (r *reader) close() {
	for _, c := range r.open {
		if c.hangUp != nil {
			c.hangUp()
		}
	}
}

// document returns the node file of a Node object; ok is false if there is none.
func (r *reader) document(name string) (config.Document, bool) {
	i := slices.IndexFunc(r.options.Documents, func(d config.Document) bool {
		return node.LikelyObjectName(d.Node) == name
	})
	if i < 0 {
		return config.Document{}, false
	}
	return r.options.Documents[i], true
}

// connect connects to a node once. The connection stays open, and a failure is not tried again, since
// each bundle would wait for it.
func (r *reader) connect(ctx context.Context, document config.Document, reporter ui.Reporter) (*node.Node, func(),
	error) {
	name := document.Node.Metadata.Name
	if _, known := r.open[name]; !known {
		var c connection
		c.node, c.hangUp, c.err = r.options.Connect(ctx, document, reporter)
		r.open[name] = c
	}
	return r.open[name].node, func() {}, r.open[name].err
}

// slice is the part of a node's logs that is about one spec.
type slice struct {
	node string
	tail tail
	// troubles are lines of errors that name a namespace of the spec; errors are other lines of errors.
	troubles, errors []string
	names            []string // of the namespaces
}

// Record implements logs.Sink.
func (s *slice) Record(record logs.Record) error {
	at := "-"
	if !record.Time.IsZero() {
		at = record.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	s.tail.add([]byte(at+" "+record.Source+" | "+record.Text+"\n"), maxSlice)
	if record.Level < logline.Error {
		return nil
	}
	text := record.Source + " on " + s.node + ": " + suite.Shortened(record.Text, maxCause)
	isOfSpec := slices.ContainsFunc(s.names, func(name string) bool { return strings.Contains(record.Text, name) })
	switch {
	case isOfSpec && len(s.troubles) < maxCauses:
		s.troubles = append(s.troubles, text)
	case !isOfSpec && len(s.errors) < maxCauses:
		s.errors = append(s.errors, text)
	}
	return nil
}

// Flush implements logs.Sink.
func (s *slice) Flush() error { return nil }

// read reads the logs of a node in a window. The slice is usable also if the error is not nil.
func (r *reader) read(ctx context.Context, name string, w window, namespaces []string) (*slice, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sliceLimit, fmt.Errorf("not read within %s: %w", sliceLimit,
		context.DeadlineExceeded))
	defer cancel()
	s := &slice{node: name, names: namespaces}
	o := logs.Options{Since: w.begin.Add(-margin), Until: w.end.Add(margin), Tail: -1}
	err := r.merge(ctx, name, o, s)
	for _, namespace := range namespaces { // their files are gone with the pods, unless e2e.test has kept them
		more := o
		more.Sources = []string{"pod/" + namespace + "/*"}
		if err == nil {
			err = withoutNothing(r.merge(ctx, name, more, s))
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s, err
}

func (r *reader) merge(ctx context.Context, name string, o logs.Options, s *slice) error {
	merger := logs.NewMerger(false, s)
	in := merger.Begin()
	reading := make(chan error, 1)
	go func() {
		err := r.send(ctx, name, o, merger, in)
		in.Close(ctx)
		reading <- err
	}()
	err := merger.Run(ctx)
	return errors.Join(err, <-reading)
}

func (r *reader) send(ctx context.Context, name string, o logs.Options, m *logs.Merger, in *logs.Input) error {
	document, ok := r.document(name)
	if !ok {
		err := logs.ShowByAPI(ctx, r.c, name, o, m, in, ui.Discard{})
		if err != nil {
			err = fmt.Errorf("no node file names it, and through the API server: %w", err)
		}
		return err
	}
	n, _, err := r.connect(ctx, document, ui.Discard{})
	if err != nil {
		return err
	}
	return logs.Show(ctx, n, o, m, in, ui.Discard{})
}

// withoutNothing returns err unless it means that a source has no log.
func withoutNothing(err error) error {
	var nothing *logs.NothingError
	if errors.As(err, &nothing) {
		return nil
	}
	return err
}

// diagnose gathers diagnostics of nodes into one file. It returns what the file lacks, with the reasons.
func (r *reader) diagnose(ctx context.Context, nodes []string, path string) (missing []string, err error) {
	var documents []config.Document
	for _, name := range nodes[:min(len(nodes), maxDiagnosed)] {
		if document, ok := r.document(name); ok {
			documents = append(documents, document)
		} else {
			missing = append(missing, "diagnostics of "+name+": no node file names it (-c)")
		}
	}
	if len(documents) == 0 {
		return missing, errNoDocument
	}
	manifest, err := diag.Gather(ctx, documents, path, diag.Options{
		Profile: diag.Quick, Redact: r.options.Redact, Version: r.options.Version, Timeout: diagnosisLimit,
		NodeTimeout: diagnosisLimit - 10*time.Second, CollectorTimeout: sliceLimit, Cluster: r.c, Connect: r.connectAlone,
		Reporter: func(config.Document) ui.Reporter { return ui.Discard{} },
		Remedies: func(_, text string) string { return text },
	})
	if err != nil {
		return append(missing, "diagnostics of nodes: "+err.Error()), err
	}
	for _, n := range manifest.Nodes {
		if n.Error != "" {
			missing = append(missing, "diagnostics of "+n.Name+": "+n.Error)
		}
	}
	return missing, nil
}

var errNoDocument = errors.New("no node file names a node of the spec")

// connectAlone connects to a node for the diagnostics, which use connections side by side.
func (r *reader) connectAlone(ctx context.Context, document config.Document, reporter ui.Reporter) (*node.Node,
	func(), error) {
	if known, ok := r.open[document.Node.Metadata.Name]; ok && known.err != nil {
		return nil, nil, known.err
	}
	return r.options.Connect(ctx, document, reporter)
}

// diagnosticsName is the name of the file with the diagnostics, in the folder of the run's evidence.
const diagnosticsName = "nodes.tar.gz"

// relative returns the path of a file relative to a folder, with slashes.
func relative(folder, path string) string {
	if r, err := filepath.Rel(folder, path); err == nil {
		path = r
	}
	return filepath.ToSlash(path)
}

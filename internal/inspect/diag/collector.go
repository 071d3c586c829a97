package diag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Collector gathers the diagnostics on one subject of a node.
type Collector struct {
	Name    string
	About   string
	From    Profile       // the smallest profile that includes the collector
	Timeout time.Duration // 0: collectorTimeout
	Collect func(context.Context, *Task) error
}

// Task is the run of one collector on one node.
type Task struct {
	Node     *node.Node
	Document config.Document
	Profile  Profile
	Cluster  *cluster.Cluster // nil: no kubeconfig was given

	folder   *folder
	record   *CollectorRecord
	mutex    sync.Mutex
	findings []Finding
	reading  chan struct{} // shared by all nodes: see gathering.reading
	owners   clusterOwners
	remedies func(node, text string) string
}

// Table stores a table twice: the document as JSON, and the text that the given function writes.
func (t *Task) Table(name string, document any, text func(io.Writer) error) error {
	if err := t.folder.table(name, document, text); err != nil {
		return err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.record.Tables = append(t.record.Tables, name)
	return nil
}

// Find records that the node was examined, and the findings, if there are any.
func (t *Task) Find(found ...finding.Finding) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.record.Examined = true
	clean := t.folder.redactor.String
	for _, f := range found {
		f.What, f.Evidence, f.Remedy = clean(f.What), clean(f.Evidence), clean(f.Remedy)
		t.findings = append(t.findings, Finding(f))
	}
}

// place returns where in the bundle a file of the node is stored, as a path below the node's folder.
// It redacts the path, since the agent does not redact names of files.
func (t *Task) place(folder, path string) string {
	return folder + "/" + safePath(t.folder.redactor.String(path))
}

// write calls fill, and stores the bytes that fill writes as a file. If fill fails, write stores
// the bytes up to the failure.
func (t *Task) write(record FileRecord, limit int64, fill func(io.Writer) error) error {
	o, path, err := t.folder.output(record.Path, limit)
	if err != nil {
		return err
	}
	if record.Raw {
		o.stream = nil
	}
	err = fill(o)
	err = errors.Join(err, o.Close())
	record.Path, record.Bytes, record.From = path, o.kept, t.folder.redactor.String(record.From)
	record.LinesOnly = o.linesOnly
	if o.cut {
		record.Cut = strings.TrimPrefix(record.Cut+", and what follows", ", and ")
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.record.Files = append(t.record.Files, record)
	return err
}

// redacting returns a context whose calls the agent answers with redacted replies.
func redacting(ctx context.Context, patterns []string) context.Context {
	ctx = metadata.AppendToOutgoingContext(ctx, redact.Metadata, "1")
	for _, pattern := range patterns {
		ctx = metadata.AppendToOutgoingContext(ctx, redact.MetadataPatterns, pattern)
	}
	return ctx
}

// visit is the gathering of diagnostics from one node.
type visit struct {
	node     *node.Node
	document config.Document
	options  Options
	folder   *folder
	reading  chan struct{}
	owners   clusterOwners
}

// collect runs the collectors, a few at a time, and returns their records in the order of
// collectors.
func (v *visit) collect(ctx context.Context, collectors []Collector) ([]CollectorRecord, []Finding) {
	ctx = redacting(ctx, v.options.Redact)
	records := make([]CollectorRecord, len(collectors))
	findings := make([][]Finding, len(collectors))
	free := make(chan struct{}, abreast)
	var running sync.WaitGroup
	for i, c := range collectors {
		records[i] = CollectorRecord{Name: c.Name, About: c.About}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			records[i].Result, records[i].Error = Late, "not started: "+because(ctx)
			continue
		}
		running.Go(func() {
			defer func() { <-free }()
			findings[i] = v.run(ctx, c, &records[i])
		})
	}
	running.Wait()
	var all []Finding
	for _, f := range findings {
		all = append(all, f...)
	}
	return records, all
}

// because returns why the gathering from a node ended early.
func because(ctx context.Context) string {
	if context.Cause(ctx) == context.DeadlineExceeded {
		return "the time for the node was over; raise --node-timeout"
	}
	return context.Cause(ctx).Error()
}

func (v *visit) run(ctx context.Context, c Collector, record *CollectorRecord) []Finding {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = collectorTimeout
	}
	if limit := v.options.CollectorTimeout; limit > 0 {
		timeout = min(timeout, limit)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	task := &Task{
		remedies: v.options.Remedies,
		Node:     v.node, Document: v.document, Profile: v.options.Profile, Cluster: v.options.Cluster,
		folder: v.folder, record: record,
		reading: v.reading, owners: v.owners,
	}
	err := guarded(limited, c, task)
	record.Seconds = time.Since(began).Seconds()
	switch {
	case err == nil:
		record.Result = Done
	case ctx.Err() != nil:
		record.Result, record.Error = Late, because(ctx)
	case limited.Err() != nil:
		record.Result, record.Error = Late, fmt.Sprintf("no answer within %s", timeout)
	case absent(err):
		record.Result, record.Error = Absent, err.Error()
	default:
		record.Result, record.Error = Failed, err.Error()
	}
	record.Error = v.folder.redactor.String(record.Error)
	return task.findings
}

// guarded runs a collector, and returns a panic of the collector as an error.
func guarded(ctx context.Context, c Collector, task *Task) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("swdt has a bug (%v); please report it with this:\n%s", p, debug.Stack())
		}
	}()
	return c.Collect(ctx, task)
}

// absent reports whether err means that the node lacks the object that the collector reads. A
// missing object is not a failure. If err joins several errors, each of them must mean a missing
// object.
func absent(err error) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(several.Unwrap(), func(one error) bool { return !absent(one) })
	}
	return errors.Is(err, noClusterError{}) || errors.Is(err, fault.ErrNotExist) ||
		errors.Is(err, fault.ErrNotSupported) || errors.Is(err, fault.ErrNoService)
}

package evidence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Write writes a bundle for each of the failed results of a run, into a folder of the run below the folder
// of all results. It returns the bundles by the name of the spec. Call Stop before. A bundle names the parts
// that cannot be read, so the only error is that of a file that cannot be written, which ends the writing.
// If ctx has ended, the bundles have nothing from nodes.
func (r *Recorder) Write(ctx context.Context, results string, run int, failed []suite.Result, o Options,
	reporter ui.Reporter) (map[string]Bundle, error) {
	redactor, err := redact.New(o.Redact)
	if err != nil {
		return nil, err
	}
	r.mutex.Lock() // nothing else works with the records any more
	defer r.mutex.Unlock()
	c := &collection{Recorder: r, results: results, redactor: redactor, reader: newReader(r.c, o),
		folder: filepath.Join(results, "run-"+strconv.Itoa(run), "evidence"), run: run, reporter: reporter,
		until: time.Now().Add(nodesLimit)}
	defer c.reader.close()
	defer ui.Done(reporter)
	return c.write(ctx, failed)
}

// collection writes the bundles of one run.
type collection struct {
	*Recorder
	results  string // the folder of all results
	folder   string // of the evidence of this run
	run      int
	redactor *redact.Redactor
	reader   *reader
	reporter ui.Reporter
	written  int64     // bytes
	until    time.Time // when no more logs of nodes are read
	diagnosis
}

// diagnosis is the file with diagnostics of nodes, which the bundles of a run share.
type diagnosis struct {
	path    string // "" if there is none
	nodes   []string
	missing []string
}

func (c *collection) write(ctx context.Context, failed []suite.Result) (map[string]Bundle, error) {
	all := map[string]Bundle{}
	var bundles []*bundle
	for i, result := range failed {
		if i >= maxBundles {
			all[result.Name] = Bundle{Run: c.run, Files: []string{}, Causes: []string{}, Missing: []string{fmt.Sprintf(
				"more than %d specs failed in this run; only the first have evidence", maxBundles)}}
			continue
		}
		bundles = append(bundles, c.bundle(i+1, result))
	}
	if len(bundles) == 0 {
		return all, nil
	}
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return all, fmt.Errorf("write the evidence: %w", err)
	}
	for i, b := range bundles {
		c.reporter.Step("collecting evidence of %d of %d failed specs", i+1, len(bundles))
		c.readNodes(ctx, b)
	}
	c.diagnose(ctx, bundles)
	for _, b := range bundles {
		written, err := b.write()
		if err != nil {
			return all, fmt.Errorf("write the evidence: %w", err)
		}
		all[b.result.Name] = written
	}
	return all, nil
}

// bundle returns the bundle of a result, with all that the recorder knows.
func (c *collection) bundle(number int, result suite.Result) *bundle {
	w := window{result.Begin, result.Begin.Add(time.Duration(result.Seconds * float64(time.Second)))}
	b := &bundle{collection: c, result: result, window: w,
		folder:     filepath.Join(c.folder, strconv.Itoa(number)+"-"+slug(result.Name)),
		namespaces: c.during(w, result.Output), states: c.nodesDuring(w)}
	b.nodes = involved(b.namespaces, b.states)
	for _, n := range b.namespaces {
		if n.dropped != "" {
			b.lacks("the records of namespace %s: %s", n.name, n.dropped)
		}
		if n.left > 0 {
			b.lacks("%d pods and events of namespace %s: there were too many", n.left, n.name)
		}
	}
	if len(b.namespaces) == 0 {
		b.lacks("pods and events: no namespace of this spec was seen")
	}
	for _, gap := range c.gaps {
		if !gap.Time.Before(w.begin.Add(-margin)) && !gap.Time.After(w.end.Add(margin)) {
			b.lacks("%s", gap.State)
		}
	}
	if c.unknown > 0 {
		b.lacks("%d namespaces of this run: there were too many", c.unknown)
	}
	return b
}

// readNodes reads the logs of the nodes of a bundle.
func (c *collection) readNodes(ctx context.Context, b *bundle) {
	if len(b.nodes) == 0 {
		b.lacks("logs of nodes: no pod of the spec was on a node")
		return
	}
	var names []string
	for _, n := range b.namespaces {
		names = append(names, n.name)
	}
	for i, name := range b.nodes {
		switch {
		case ctx.Err() != nil:
			b.lacks("logs of node %s: the run was interrupted", name)
			continue
		case i >= maxInvolved:
			b.lacks("logs of node %s: more than %d nodes are involved", name, maxInvolved)
			continue
		case time.Now().After(c.until):
			b.lacks("logs of node %s: reading the logs of nodes has taken %s", name, nodesLimit)
			continue
		case c.written > maxDisk:
			b.lacks("logs of node %s: the evidence of this run has more than %s", name, ui.Size(maxDisk))
			continue
		}
		s, err := c.reader.read(ctx, name, b.window, names)
		if err != nil {
			b.lacks("logs of node %s: %v", name, err)
		}
		if len(s.tail.kept) > 0 {
			c.written += int64(len(s.tail.kept))
			b.slices = append(b.slices, s)
		} else if err == nil {
			b.lacks("logs of node %s: nothing was logged in this time", name)
		}
	}
}

// diagnose gathers diagnostics of the nodes of all bundles.
func (c *collection) diagnose(ctx context.Context, bundles []*bundle) {
	for _, b := range bundles {
		for _, name := range b.nodes {
			if !slices.Contains(c.diagnosis.nodes, name) {
				c.diagnosis.nodes = append(c.diagnosis.nodes, name)
			}
		}
	}
	if len(c.diagnosis.nodes) == 0 || ctx.Err() != nil {
		return
	}
	c.reporter.Step("gathering diagnostics of the nodes of failed specs")
	path := filepath.Join(c.folder, diagnosticsName)
	missing, err := c.reader.diagnose(ctx, c.diagnosis.nodes, path)
	c.diagnosis.missing = missing
	if err == nil {
		c.diagnosis.path = path
	}
}

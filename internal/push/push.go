package push

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// Push brings the node's components to the state in the node file. It replaces all components
// that differ in one transaction. If none differs, it makes one call and writes nothing.
//
// A *RolledBackError means that the node was changed and changed back. An *InterruptedError
// means that the node is still at work. Any other error means that the node is unchanged. The
// result is filled in as far as it is known, also with an error.
func Push(ctx context.Context, n *node.Node, doc config.Document, options Options, r ui.Reporter) (NodeResult, error) {
	w := newWork(n, doc, options, r)
	return w.finish(w.push(ctx))
}

func (w *work) push(ctx context.Context) error {
	if err := w.choose(w.options.Only); err != nil {
		return err
	}
	reply, err := w.obtainAndInspect(ctx)
	if err != nil {
		return err
	}
	defer w.unlock(ctx)
	if reply, err = w.settlePending(ctx, reply); err != nil {
		return err
	}
	if err := w.decideAll(reply); err != nil {
		return err
	}
	if err := w.checkDependencies(ctx); err != nil {
		return err
	}
	if !w.needed() || w.options.DryRun {
		w.planned()
		if !w.options.DryRun {
			w.keep(ctx)()
		}
		return w.tidy(ctx)
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	err = w.stage(ctx)
	if err == nil {
		err = w.stageCompanions(ctx)
	}
	if err != nil {
		w.unstage(ctx, err)
		return err
	}
	if w.options.Commit != nil && !w.options.Commit() {
		err := &SupersededError{}
		w.unstage(ctx, err)
		return err
	}
	defer w.keep(ctx)()
	return w.swapInCluster(ctx)
}

// obtainAndInspect reads the sources on your machine while the node inspects itself.
func (w *work) obtainAndInspect(ctx context.Context) (*agentv1.InspectReply, error) {
	var reply *agentv1.InspectReply
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return w.obtain(ctx) })
	both.Go(func() (err error) {
		reply, err = w.inspect(ctx)
		return err
	})
	return reply, both.Wait()
}

func (w *work) obtain(ctx context.Context) error {
	if err := w.lookAtSources(); err != nil {
		return err
	}
	for _, c := range w.components {
		begun := time.Now()
		binary, err := w.options.Sources.Obtain(ctx, w.request(c), w.reporter)
		if err != nil {
			return c.fail(err)
		}
		c.result.Seconds.Obtain = time.Since(begun).Seconds()
		c.binary, c.result.SHA256 = binary, binary.SHA256
	}
	return nil
}

func (w *work) request(c *component) source.Request { return SourceOf(w.doc, c.spec) }

// SourceOf returns the request for a provisioner's binary, which is a Windows executable if
// its destination is one.
func SourceOf(doc config.Document, p v1alpha1.Provisioner) source.Request {
	return source.Request{
		URL:        doc.Resolve(p.SourceURL),
		SHA256:     p.SHA256,
		Executable: strings.EqualFold(filepath.Ext(p.Destination), ".exe"),
	}
}

// Ahead reads the binaries on your machine that a push with these options will send, and
// compares them with the binaries that the last push left on the nodes. Callers use it
// while they wait for the connection.
func Ahead(ctx context.Context, documents []config.Document, options Options) {
	begun := map[source.Request]bool{}
	for _, doc := range documents {
		for _, p := range doc.Node.Spec.Kubernetes.Provisioners {
			request := SourceOf(doc, p)
			if len(options.Only) > 0 && !named(options.Only, p.Name) || begun[request] {
				continue
			}
			begun[request] = true
			options.Sources.Ahead(ctx, request, func(binary source.Binary) {
				if options.Depot != nil && !options.DryRun {
					options.Depot.Ahead(ctx, fileOf(p.Name, binary, options.Depot))
				}
			})
		}
	}
}

// inspect asks the node, in one call, for everything that decide needs.
func (w *work) inspect(ctx context.Context) (*agentv1.InspectReply, error) {
	request := &agentv1.InspectRequest{}
	for _, c := range w.components {
		request.Components = append(request.Components, c.inspect())
	}
	reply, err := w.node.Swap.Inspect(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("look at the node: %w", err)
	}
	if got := len(reply.GetComponents()); got != len(w.components) {
		return nil, fmt.Errorf("look at the node: asked for %d components, and the node reported %d", len(w.components), got)
	}
	for i, c := range w.components {
		c.see(reply.GetComponents()[i])
	}
	return reply, w.seeTraces(ctx)
}

// seeTraces reads the record of the changes that `swdt trace` has made. It does so only if
// the command line of a component could change.
func (w *work) seeTraces(ctx context.Context) error {
	if !slices.ContainsFunc(w.components, func(c *component) bool { return c.spec.Args != nil }) {
		return nil
	}
	traces, err := tracerecord.Load(ctx, func(ctx context.Context, path string) ([]byte, error) {
		return smallfile.Read(ctx, w.node, path)
	})
	for _, c := range w.components {
		c.traces = traces
	}
	return err
}

func (w *work) decideAll(reply *agentv1.InspectReply) error {
	for _, c := range w.components {
		if err := c.fail(c.binary.For(reply.GetFacts().GetArchitecture())); err != nil {
			return err
		}
		if err := c.fail(c.decide(w.options.Force)); err != nil {
			return err
		}
		if text := c.otherFile(); text != "" {
			w.reporter.Warn("%s: %s", c.spec.Name, text)
			c.addMessage(text)
		}
		if err := c.fail(w.checkVersionInPlace(c)); err != nil {
			return err
		}
	}
	return nil
}

// checkDependencies reports a component's dependsOn services that the node does not have:
// such a name is probably a mistake, and Windows would then not wait for the service that was
// meant.
func (w *work) checkDependencies(ctx context.Context) error {
	if !w.needed() {
		return nil
	}
	for _, c := range w.components {
		for _, name := range c.spec.DependsOn {
			if w.hasService(name) {
				continue
			}
			_, err := w.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
			switch {
			case errors.Is(err, fault.ErrNoService):
				text := fmt.Sprintf("dependsOn names %s, but the node has no such service: correct the name, or remove it", name)
				w.reporter.Warn("%s: %s", c.spec.Name, text)
				c.addMessage(text)
			case err != nil:
				return fmt.Errorf("look at the service %s, which %s is to wait for: %w", name, c.spec.Name, err)
			}
		}
	}
	return nil
}

// hasService reports whether name is a component of the push whose service exists on the
// node.
func (w *work) hasService(name string) bool {
	return slices.ContainsFunc(w.components, func(c *component) bool {
		return strings.EqualFold(c.spec.Name, name) && c.state.GetServiceExists()
	})
}

// checkVersionInPlace checks the version of a binary that the push does not replace.
func (w *work) checkVersionInPlace(c *component) error {
	if c.change == changeBinary || c.change == changeCreate {
		return nil
	}
	c.result.Version.After = c.state.GetVersion()
	if c.change == changeSkipped {
		return nil // the user wants that file kept, whatever its version is
	}
	return w.checkVersion(c)
}

// checkVersion compares the version after the push with the wanted one.
func (w *work) checkVersion(c *component) error {
	wanted, got := c.spec.Version, c.result.Version.After
	if wanted == "" || sameVersion(wanted, got) {
		return nil
	}
	err := &VersionError{Wanted: wanted, Got: got}
	if w.options.Strict {
		return err
	}
	w.reporter.Warn("%s: %v", c.spec.Name, err)
	c.addMessage(err.Error())
	return nil
}

// sameVersion reports whether two versions are equal, apart from a leading v. The version
// that a binary reports may have build metadata (+…) that the node file omits.
func sameVersion(wanted, got string) bool {
	wanted, got = strings.TrimPrefix(wanted, "v"), strings.TrimPrefix(got, "v")
	if wanted == got {
		return true
	}
	bare, _, _ := strings.Cut(got, "+")
	return wanted == bare
}

func (w *work) needed() bool {
	for _, c := range w.components {
		if c.change.changes() {
			return true
		}
	}
	return false
}

// planned completes the result of a push that has nothing to do, and of a dry run.
func (w *work) planned() {
	for _, c := range w.components {
		c.result.Action = c.change.action()
		if c.change.changes() {
			w.result.Result = Changed
		}
	}
}

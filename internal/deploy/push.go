package deploy

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
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/trace/record"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Push brings the node's components to what the node file says, all that differ
// in one transaction. Where nothing differs it makes one call and writes
// nothing.
//
// A *RolledBackError means that the node changed and was changed back, an
// *InterruptedError that it is still at work, any other error that it is as it
// was. The result is filled as far as is known in every case.
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
	if err := w.stage(ctx); err != nil {
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

// obtainAndInspect reads the sources here while the node looks at itself.
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

func (w *work) request(c *component) source.Request { return requestOf(w.doc, c.spec) }

func requestOf(doc config.Document, p v1alpha1.Provisioner) source.Request {
	return source.Request{
		URL:        doc.Resolve(p.SourceURL),
		SHA256:     p.SHA256,
		Executable: strings.EqualFold(filepath.Ext(p.Destination), ".exe"),
	}
}

// Ahead begins to read the binaries on this host that a push with these options is
// going to send, and to compare them with what the last push left on the nodes, for
// who has something else to wait for: the connection.
func Ahead(ctx context.Context, documents []config.Document, options Options) {
	begun := map[source.Request]bool{}
	for _, doc := range documents {
		for _, p := range doc.Node.Spec.Kubernetes.Provisioners {
			request := requestOf(doc, p)
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

// inspect asks the node for everything that is needed to decide, in one call.
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
		return nil, fmt.Errorf("look at the node: asked about %d components and got %d", len(w.components), got)
	}
	for i, c := range w.components {
		c.see(reply.GetComponents()[i])
	}
	return reply, w.seeTraces(ctx)
}

// seeTraces reads what swdt trace has changed, where a command line is of
// interest.
func (w *work) seeTraces(ctx context.Context) error {
	if !slices.ContainsFunc(w.components, func(c *component) bool { return c.spec.Args != nil }) {
		return nil
	}
	traces, err := record.Load(ctx, func(ctx context.Context, path string) ([]byte, error) {
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
			c.say(text)
		}
		if err := c.fail(w.checkVersionInPlace(c)); err != nil {
			return err
		}
	}
	return nil
}

// checkDependencies tells of services that are to be waited for and are not there:
// a mistake in a name would just have nobody wait.
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
			case errors.Is(err, host.ErrNoService):
				text := fmt.Sprintf("dependsOn names %s, and the node has no such service: correct the name, or remove it", name)
				w.reporter.Warn("%s: %s", c.spec.Name, text)
				c.say(text)
			case err != nil:
				return fmt.Errorf("look at the service %s, which %s is to wait for: %w", name, c.spec.Name, err)
			}
		}
	}
	return nil
}

// hasService is whether a service is one of the push's, and there.
func (w *work) hasService(name string) bool {
	return slices.ContainsFunc(w.components, func(c *component) bool {
		return strings.EqualFold(c.spec.Name, name) && c.state.GetServiceExists()
	})
}

// checkVersionInPlace is about a binary that stays.
func (w *work) checkVersionInPlace(c *component) error {
	if c.change == changeBinary || c.change == changeCreate {
		return nil
	}
	c.result.Version.After = c.state.GetVersion()
	if c.change == changeSkipped {
		return nil // whatever stands there is not ours to judge
	}
	return w.checkVersion(c)
}

// checkVersion compares the version after with the one wanted.
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
	c.say(err.Error())
	return nil
}

// sameVersion compares with or without v. What a binary reports may have build
// metadata (+…) that the node file leaves out.
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

// planned completes a result where nothing is, or may be, done.
func (w *work) planned() {
	for _, c := range w.components {
		c.result.Action = c.change.action()
		if c.change.changes() {
			w.result.Result = Changed
		}
	}
}

package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// session is a command's work on nodes: their documents and the story.
type session struct {
	app       *app
	documents []config.Document
	story     *ui.Story
	options   node.Options
	quiet     bool // only warnings are told, unless somebody watches
}

// begin reads the node files and gets ready to connect. Nothing is contacted.
func (a *app) begin() (*session, error) {
	documents, err := a.documents()
	if err != nil {
		return nil, err
	}
	return a.sessionFor(documents)
}

func (a *app) sessionFor(documents []config.Document) (*session, error) {
	agent, err := a.env.Agent()
	if err != nil {
		return nil, err
	}
	story := a.newStory()
	own := story.Node("")
	for _, document := range documents {
		for _, warning := range document.Warnings {
			own.Warn("%s", warning)
		}
	}
	return &session{
		app: a, documents: documents, story: story,
		options: node.Options{
			Agent:            agent,
			Prompt:           a.prompter(story),
			Keyring:          node.NewKeyring(),
			AcceptNewHostKey: a.global.acceptNewHostKey,
			KnownHosts:       a.global.knownHosts,
			SSHConfig:        a.global.sshConfig,
		},
	}, nil
}

// newStory begins the story of a command on stderr.
func (a *app) newStory() *ui.Story {
	return ui.NewStory(a.streams.Err, ui.StoryOptions{
		Terminal: a.canDraw(a.streams.Err), JSON: a.global.logs == "json", Verbose: a.global.verbose,
		Rewrite: a.remedies,
	})
}

// reporter tells of one node, by its name where there are several.
func (s *session) reporter(document config.Document) ui.Reporter {
	name := document.Node.Metadata.Name
	if len(s.documents) == 1 && s.app.global.logs == "text" {
		name = ""
	}
	r := s.story.Node(name)
	if s.quiet && !s.app.global.verbose && !isTerminal(s.app.streams.Err) {
		return quietReporter{r}
	}
	return r
}

// quietReporter keeps the story out of a program's own output.
type quietReporter struct{ ui.Reporter }

func (q quietReporter) Step(format string, args ...any) { q.Debug(format, args...) }
func (q quietReporter) Info(format string, args ...any) { q.Debug(format, args...) }
func (q quietReporter) Transfer(string, int64) ui.Progress {
	return ui.Discard{}.Transfer("", 0)
}

// onNodes connects to every node and does the work there, at most --parallel
// at a time, within --timeout. The results are in the order of the nodes' names, n2
// before n10; the work is begun in the order of the node files.
func onNodes[T any](ctx context.Context, s *session,
	work func(ctx context.Context, n *node.Node, document config.Document, r ui.Reporter) (T, error),
) []fleet.Result[T] {
	defer s.story.End()
	ctx, cancel := s.app.global.bounded(ctx)
	defer cancel()
	results := fleet.Run(ctx, s.documents, s.app.global.parallel, func(ctx context.Context, document config.Document) (T, error) {
		r := s.reporter(document)
		defer ui.Done(r)
		n, err := s.connect(ctx, document, r)
		if err != nil {
			var none T
			return none, s.app.remedied(document.Node.Metadata.Name, explain(ctx, err))
		}
		defer closeNode(ctx, n)
		result, err := work(ctx, n, document, r)
		return result, s.app.remedied(document.Node.Metadata.Name, explain(ctx, err))
	})
	slices.SortStableFunc(results, func(a, b fleet.Result[T]) int { return natural.Compare(a.Name(), b.Name()) })
	return results
}

// connect reaches one node.
func (s *session) connect(ctx context.Context, document config.Document, r ui.Reporter) (*node.Node, error) {
	options := s.options
	options.Reporter = r
	return node.Connect(ctx, document, options)
}

// closing bounds a friendly goodbye.
const closing = 500 * time.Millisecond

// closeNode does not let a node that has gone silent hold the prompt up: after
// a Ctrl-C not at all.
func closeNode(ctx context.Context, n *node.Node) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		// The work is done and its errors are told; a connection that ends badly
		// now changes nothing.
		_ = n.Close()
	}()
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// explain adds why the context ended, where that is why the work did.
func explain(ctx context.Context, err error) error {
	var timeout *timeoutError
	if err == nil || ctx.Err() == nil || !errors.As(context.Cause(ctx), &timeout) || errors.As(err, &timeout) {
		return err
	}
	return &overdueError{timeout, err}
}

// overdueError is work that --timeout cut off, with what it was at.
type overdueError struct {
	timeout *timeoutError
	at      error
}

func (e *overdueError) Error() string   { return e.timeout.Error() + ": " + e.at.Error() }
func (e *overdueError) Unwrap() []error { return []error{e.timeout, e.at} }

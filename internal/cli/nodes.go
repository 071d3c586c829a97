package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/config/trust"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// session is a command's work on nodes: their documents and the progress output.
type session struct {
	app       *app
	documents []config.Document
	story     *ui.Story
	options   node.Options
	quiet     bool // prints only warnings, unless stderr is a terminal
}

// names returns the names of the nodes.
func (s *session) names() (all []string) {
	for _, document := range s.documents {
		all = append(all, document.Node.Metadata.Name)
	}
	return all
}

// only returns a session with some of the nodes, by name, that reports its own progress.
func (s *session) only(keep func(name string) bool) *session {
	some := *s
	some.documents = slices.DeleteFunc(slices.Clone(s.documents), func(d config.Document) bool { return !keep(d.Node.Metadata.Name) })
	some.story = s.app.newStory()
	some.options.Prompt = s.app.prompter(some.story)
	return &some
}

// begin reads the node files and prepares the connections. It contacts nothing.
func (a *app) begin() (*session, error) {
	documents, err := a.documents()
	if err != nil {
		return nil, err
	}
	return a.sessionFor(documents)
}

func (a *app) sessionFor(documents []config.Document) (*session, error) {
	documents = a.applyVia(documents)
	if err := a.checkWay(documents); err != nil {
		return nil, err
	}
	story := a.newStory()
	own := story.Node("")
	for _, document := range documents {
		for _, warning := range document.Warnings {
			own.Warn("%s", warning)
		}
		if beside := trust.Beside(document); beside != "" {
			own.Info("%s", beside)
		}
	}
	return &session{
		app: a, documents: documents, story: story,
		options: node.Options{
			AgentFor:         a.agentFor,
			Locate:           a.locate,
			Prompt:           a.prompter(story),
			Keyring:          node.NewKeyring(),
			AcceptNewHostKey: a.global.acceptNewHostKey,
			KnownHosts:       a.global.knownHosts,
			SSHConfig:        a.global.sshConfig,
			KeepPod:          a.global.via.keep,
			PullLimit:        a.global.via.pull,
			Clusters:         a.viaClusters(),
			SharedNamespace:  a.global.via.shared,
		},
	}, nil
}

// newStory begins the progress output of a command on stderr.
func (a *app) newStory() *ui.Story {
	if a.whole != nil {
		return a.whole.Part()
	}
	return ui.NewStory(a.streams.Err, ui.StoryOptions{
		Terminal: a.canDraw(a.streams.Err), JSON: a.global.logs == "json", Verbose: a.global.verbose,
		Rewrite: a.remedies,
	})
}

// reporter returns the reporter of one node. The reporter names the node if there are several
// nodes, or if the progress is JSON.
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

// quietReporter keeps swdt's progress out of the output of a program that it runs.
type quietReporter struct{ ui.Reporter }

func (q quietReporter) Step(format string, args ...any) { q.Debug(format, args...) }
func (q quietReporter) Info(format string, args ...any) { q.Debug(format, args...) }
func (q quietReporter) Transfer(string, int64) ui.Progress {
	return ui.Discard{}.Transfer("", 0)
}

// onNodes connects to every node and does the work on it, on at most --parallel nodes at a time,
// within --timeout. It starts in the order of the node files and returns the results in the order
// of the nodes' names, n2 before n10.
func onNodes[T any](ctx context.Context, s *session,
	work func(ctx context.Context, n *node.Node, document config.Document, r ui.Reporter) (T, error),
) []fleet.Result[T] {
	defer s.story.End()
	ctx, cancel := s.app.global.bounded(ctx)
	defer cancel()
	results := fleet.Run(ctx, s.documents, s.app.global.parallel,
		func(ctx context.Context, document config.Document) (T, error) { return workOn(ctx, s, document, work) })
	slices.SortStableFunc(results, func(a, b fleet.Result[T]) int { return natural.Compare(a.Name(), b.Name()) })
	return results
}

// workOn connects to a node and does the work on it.
func workOn[T any](ctx context.Context, s *session, document config.Document,
	work func(ctx context.Context, n *node.Node, document config.Document, r ui.Reporter) (T, error)) (T, error) {
	r := s.reporter(document)
	defer ui.Done(r)
	n, err := s.connect(ctx, document, r)
	if err != nil {
		var none T
		return none, s.app.remedied(document.Node.Metadata.Name, explain(ctx, err))
	}
	defer n.Leave(ctx)
	result, err := work(ctx, n, document, r)
	return result, s.app.remedied(document.Node.Metadata.Name, explain(ctx, err))
}

// connect connects to one node.
func (s *session) connect(ctx context.Context, document config.Document, r ui.Reporter) (*node.Node, error) {
	options := s.options
	options.Reporter = r
	n, err := node.Connect(ctx, document, options)
	if err != nil && ctx.Err() == nil {
		if ended := endedSandbox(document.File, document.Node.Spec.Credentials.PrivateKey); ended != nil {
			return nil, &node.UnreachableError{Node: document.Node.Metadata.Name, Err: ended}
		}
	}
	return n, err
}

// connectAndClose connects to one node. It also returns the function that closes the
// connection.
func (s *session) connectAndClose(ctx context.Context, document config.Document, r ui.Reporter) (*node.Node,
	func(), error) {
	n, err := s.connect(ctx, document, r)
	if err != nil {
		return nil, nil, err
	}
	return n, func() { n.Leave(ctx) }, nil
}

// explain returns err. If the work failed because --timeout ended it, the result also says so.
func explain(ctx context.Context, err error) error {
	var timeout *timeoutError
	if err == nil || ctx.Err() == nil || !errors.As(context.Cause(ctx), &timeout) || errors.As(err, &timeout) {
		return err
	}
	return &timeoutCutError{timeout, err}
}

// timeoutCutError reports work that --timeout cut off, with its last step.
type timeoutCutError struct {
	timeout *timeoutError
	at      error
}

func (e *timeoutCutError) Error() string   { return e.timeout.Error() + ": " + e.at.Error() }
func (e *timeoutCutError) Unwrap() []error { return []error{e.timeout, e.at} }

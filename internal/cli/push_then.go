package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anmitsu/go-shlex"
	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/push/live"
	"github.com/swdt-dev/swdt/internal/ui"
)

// thenCommands are the commands that --then runs: they look at nodes or the cluster, and end by themselves.
func thenCommands() []string {
	return []string{"e2e", "readiness run", "cluster check", "doctor", "status", "exec", "powershell"}
}

// then runs commands of swdt after each pushed build, in this process.
type then struct {
	app      *app
	story    *ui.Story
	commands []thenCommand
	code     int // of the last run
}

// thenCommand is one command of --then.
type thenCommand struct {
	text string   // as the user wrote it
	args []string // with the flags of this invocation
}

// newThen checks the commands of --then. It contacts nothing.
func (a *app) newThen(texts []string) (*then, error) {
	t := &then{app: a}
	if len(texts) > 0 && a.global.readsStdin() {
		return nil, usagef("--then reads the node files again, which stdin cannot give twice: name files with -c")
	}
	for _, text := range texts {
		args, err := a.thenArguments(text)
		if err != nil {
			return nil, usagef("--then %q: %v", text, err)
		}
		t.commands = append(t.commands, thenCommand{text: text, args: args})
	}
	return t, nil
}

// thenArguments splits a command as a shell does, without expanding anything, and checks it. It returns the
// arguments with the flags of this invocation.
func (a *app) thenArguments(text string) ([]string, error) {
	words, err := shlex.Split(text, true)
	if err != nil {
		return nil, fmt.Errorf("it cannot be split into words (%w); close the quotes", err)
	}
	if len(words) > 0 && words[0] == "swdt" {
		words = words[1:]
	}
	other := a.within(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, nil)
	command, rest, err := other.root.Find(words)
	_, name, _ := strings.Cut(commandPath(command), " ")
	if err != nil || !slices.Contains(thenCommands(), name) {
		return nil, fmt.Errorf("it can run %s", strings.Join(thenCommands(), ", "))
	}
	if err := command.ParseFlags(rest); err != nil {
		return nil, err
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return nil, err
	}
	if other.global.output != "" && !other.isText() {
		return nil, errors.New("its result is shown in text: leave -o out")
	}
	if command.PreRunE != nil {
		if err := command.PreRunE(command, command.Flags().Args()); err != nil {
			return nil, err
		}
	}
	own := strings.Fields(name)
	if !slices.Equal(own, words[:min(len(own), len(words))]) {
		return nil, fmt.Errorf("write the command first: %s …", name)
	}
	return slices.Concat(own, a.thenFlags(command), words[len(own):]), nil
}

// commandPath returns the path of a command with "swdt" as the name of the program.
func commandPath(command *cobra.Command) string {
	if !command.HasParent() {
		return "swdt"
	}
	return commandPath(command.Parent()) + " " + command.Name()
}

// isText reports whether -o names a format for people.
func (a *app) isText() bool { return a.global.output == "text" || a.global.output == "wide" }

// thenFlags returns the flags of this invocation that a command has, too, and that its own line lacks.
func (a *app) thenFlags(command *cobra.Command) []string {
	names := []string{"log-format", "verbose", "accept-new-host-key", "known-hosts", "ssh-config"}
	if command.Annotations[usesNodes] != "" || command.Name() == "e2e" {
		names = append(names, "config", "node", "selector")
	}
	flags := &carriedFlags{}
	for _, name := range append(names, clusterFlags()...) {
		own, mine := command.Flag(name), a.invoked.Flag(name)
		if own == nil || own.Changed || mine == nil || !mine.Changed {
			continue
		}
		switch name {
		case "config":
			flags.add(name, "", a.global.config...)
		case "node":
			flags.add(name, "", listValues(a.global.nodes)...)
		case "verbose", "accept-new-host-key":
			flags.all = append(flags.all, "--"+name+"="+mine.Value.String())
		default:
			flags.add(name, "", mine.Value.String())
		}
	}
	return flags.all
}

// within returns an app that runs a command as a part of this one. story has the progress; nil: none is
// shown.
func (a *app) within(streams ui.Streams, story *ui.Story) *app {
	part := &app{streams: streams, env: a.env, keysWork: a.keysWork, whole: story}
	part.root = part.rootCommand()
	return part
}

// after returns what a watch runs after each push; nil if --then is not set.
func (t *then) after(s *session) *live.After {
	if len(t.commands) == 0 {
		return nil
	}
	t.story = s.story
	return &live.After{Run: t.run, NotRun: func(nodes []string) {
		t.say("not run: the push to %s has failed", strings.Join(nodes, ", "))
	}}
}

// run runs the commands one after the other, until one fails.
func (t *then) run(ctx context.Context) {
	for _, c := range t.commands {
		begun := time.Now()
		code := t.app.runWithin(ctx, t.story, c.args)
		if errors.Is(context.Cause(ctx), live.ErrNewBuild) {
			t.say("%s: interrupted by a new build", c.text)
			return
		}
		if ctx.Err() != nil {
			return
		}
		t.code = code
		if t.say("%s: %s in %s", c.text, thenOutcome(code), ui.Seconds(time.Since(begun))); code != exitDone {
			return
		}
	}
}

func thenOutcome(code int) string {
	if code == exitDone {
		return "passed"
	}
	return "failed (exit code " + strconv.Itoa(code) + ")"
}

// say prints a line as those of pushes.
func (t *then) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.app.global.logs == "json" {
		t.story.Event(thenEvent{Time: time.Now(), Event: "then", Message: text})
		return
	}
	t.story.Node("").Info("%s then %s", time.Now().Format(time.TimeOnly), text)
}

// thenEvent is a line of the output for programs.
type thenEvent struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Message string    `json:"message"`
}

// runWithin runs a command line as a part of this command, and returns its exit code. It asks no question.
func (a *app) runWithin(ctx context.Context, story *ui.Story, args []string) int {
	out := a.streams.Out
	if !a.inText() { // stdout has the records of the pushes
		out = a.streams.Err
	}
	part := a.within(ui.Streams{In: strings.NewReader(""), Out: suspending{story, out},
		Err: suspending{story, a.streams.Err}}, story)
	part.args = args
	part.root.SetArgs(args)
	err := part.root.ExecuteContext(ctx)
	var interrupted *InterruptedError
	if errors.As(context.Cause(ctx), &interrupted) { // the whole reports that
		return exitInterrupted
	}
	return part.finish(ctx, err)
}

// suspending is a writer to a stream that a story draws on.
type suspending struct {
	story *ui.Story
	w     io.Writer
}

// Write removes the live lines of the story while it writes.
func (s suspending) Write(text []byte) (n int, err error) {
	s.story.Suspend(func() { n, err = s.w.Write(text) })
	return n, err
}

// ended returns the result of a watch that has ended with err: if the user has ended it, the result is that
// of the last run.
func (t *then) ended(err error) error {
	if err == nil && t.code != exitDone {
		return &exitError{code: t.code}
	}
	return err
}

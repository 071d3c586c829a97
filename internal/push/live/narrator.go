package live

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/push/build"
	"github.com/swdt-dev/swdt/internal/push/watch"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Narrator reports the events of a watch. For people it prints a line on stdout for each
// binary that was pushed, and a line on stderr for each failure. For programs it prints each
// event as a line on stderr.
type Narrator struct {
	Story *ui.Story
	// Events reports whether stderr is for programs (--log-format json).
	Events bool
	// Several reports whether lines name their node.
	Several bool
	// Help is printed when the watch begins.
	Help string
	// ShowBuild shows the output of a failed build.
	ShowBuild func(error)
	// Print prints the result of a push or rollback on stdout. lines are the result as text for
	// people.
	Print func(result push.NodeResult, lines []string)
	// AllTried is called once, after the first connection to each of the nodes has succeeded or
	// failed. The field Nodes is the number of nodes. nil: not called.
	AllTried func()
	Nodes    int

	own     ui.Reporter
	tried   map[string]bool // nodes whose first connection succeeded or failed
	failure map[string]string
}

// Report reports one event.
func (n *Narrator) Report(e watch.Event) {
	if n.own == nil {
		n.own, n.tried, n.failure = n.Story.Node(""), map[string]bool{}, map[string]string{}
	}
	n.event(e)
	if !n.Events {
		n.describe(e)
	}
	n.result(e)
	if e.Kind == watch.Connected || e.Kind == watch.Failed {
		n.tried[e.Node] = true
		if len(n.tried) == n.Nodes && n.AllTried != nil {
			n.AllTried()
			n.AllTried = nil
		}
	}
}

// describe reports an event to people. Progress is shown only on a terminal, where later
// progress replaces it.
func (n *Narrator) describe(e watch.Event) {
	names := strings.Join(e.Names, ", ")
	switch e.Kind {
	case watch.Watching:
		how := ""
		if e.Message != "" {
			how = " (" + e.Message + ")"
		}
		n.own.Info("watching %s%s%s", names, how, n.Help)
	case watch.Waiting:
		n.line(e, names, e.Err.Error())
	case watch.Building:
		n.own.Step("building %s", names)
	case watch.Built, watch.BuildStopped:
		ui.Done(n.own)
	case watch.Unchanged:
		n.line(e, names, "the build made the same binary as before")
	case watch.BuildFailed:
		ui.Done(n.own)
		n.line(e, names, fmt.Sprintf("build failed after %s: %s", ui.Seconds(e.Took), exitText(e.Err)))
		n.ShowBuild(e.Err)
	case watch.BuildLoops:
		n.own.Warn("%s", e.Message)
	case watch.Lost:
		n.line(e, "", "lost the connection; connecting again")
	case watch.Failed:
		n.fail(e)
	case watch.Connected, watch.Pushed, watch.RolledBack:
		delete(n.failure, e.Node)
	}
}

// fail reports a failure. If a further try of the same binaries failed in the same way, fail reports it only at debug
// level.
func (n *Narrator) fail(e watch.Event) {
	text := strings.TrimPrefix(e.Err.Error(), e.Node+": ")
	retry := ""
	if e.Retry > 0 {
		retry = "; trying again"
	}
	if e.Retry > 0 && n.failure[e.Node] == text {
		n.own.Debug("%s: failed again: %s", e.Node, text)
		return
	}
	n.failure[e.Node] = text
	component := ""
	var back *push.RolledBackError
	if errors.As(e.Err, &back) && back.Outcome.GetFailedComponent() != "" {
		component = back.Outcome.GetFailedComponent()
		text = strings.TrimPrefix(text, component+": ")
	}
	first, rest, more := strings.Cut(text, "\n")
	if more {
		rest = "\n" + rest
	}
	n.line(e, component, "failed: "+first+retry+rest)
}

// line writes a line on stderr, in the same form as the lines on stdout.
func (n *Narrator) line(e watch.Event, names, text string) {
	prefix := e.Time.Format(time.TimeOnly)
	if e.Node != "" && n.Several {
		prefix += " " + e.Node
	}
	if names != "" {
		prefix += " " + names + " "
	}
	n.own.Info("%s %s", prefix, text)
}

func exitText(err error) string {
	var failed *build.FailedError
	if errors.As(err, &failed) && failed.ExitCode >= 0 {
		return fmt.Sprintf("exit code %d", failed.ExitCode)
	}
	return err.Error()
}

// result prints the result of a push.
func (n *Narrator) result(e watch.Event) {
	result, ok := e.Result.(Result)
	if !ok || e.Kind != watch.Pushed && e.Kind != watch.RolledBack {
		return
	}
	prefix := e.Time.Format(time.TimeOnly) + " "
	if n.Several {
		prefix += e.Node + " "
	}
	var lines []string
	for _, c := range worthALine(result.Components) {
		lines = append(lines, prefix+c.Line(result.order.Built[c.Name]))
	}
	n.Story.Suspend(func() { n.Print(result.NodeResult, lines) })
}

// worthALine returns the components that were changed or have a message, or all components if
// no component was changed and none has a message.
func worthALine(components []*push.ComponentResult) []*push.ComponentResult {
	var some []*push.ComponentResult
	for _, c := range components {
		if c.Action != push.ActionUnchanged || c.Message != "" {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return components
	}
	return some
}

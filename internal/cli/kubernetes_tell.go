package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/build"
	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/watch"
)

// teller tells what a watch does: to people, a line on stdout for each binary
// that was pushed and one on stderr for what went wrong; to tools, an event a
// line on stderr (--log-format json).
type teller struct {
	*session
	own     ui.Reporter
	help    string // about keys
	nodes   int
	tried   map[string]bool // nodes whose first connection succeeded or failed
	settled func()          // called when all were tried; nil: nobody cares
	failure map[string]string
}

func newTeller(s *session) *teller {
	return &teller{session: s, own: s.story.Node(""), tried: map[string]bool{}, failure: map[string]string{}}
}

func (t *teller) tell(e watch.Event) {
	t.event(e)
	if t.app.global.logs != "json" {
		t.say(e)
	}
	t.result(e)
	if e.Kind == watch.Connected || e.Kind == watch.Failed {
		t.tried[e.Node] = true
		if len(t.tried) == t.nodes && t.settled != nil {
			t.settled()
			t.settled = nil
		}
	}
}

// say is for people. What passes is shown only where it goes away again.
func (t *teller) say(e watch.Event) {
	what := strings.Join(e.Names, ", ")
	switch e.Kind {
	case watch.Watching:
		how := ""
		if e.Message != "" {
			how = " (" + e.Message + ")"
		}
		t.own.Info("watching %s%s%s", what, how, t.help)
	case watch.Waiting:
		t.line(e, what, e.Err.Error())
	case watch.Building:
		t.own.Step("building %s", what)
	case watch.Built, watch.BuildStopped:
		ui.Done(t.own)
	case watch.Unchanged:
		t.line(e, what, "the build made the same as before")
	case watch.BuildFailed:
		ui.Done(t.own)
		t.line(e, what, fmt.Sprintf("build failed after %s: %s", ui.Seconds(e.Took), exitText(e.Err)))
		t.app.showOutput(t.session, e.Err)
	case watch.BuildLoops:
		t.own.Warn("%s", e.Message)
	case watch.Lost:
		t.line(e, "", "lost the connection; connecting again")
	case watch.Failed:
		t.fail(e)
	case watch.Connected, watch.Pushed, watch.RolledBack:
		delete(t.failure, e.Node)
	}
}

// fail tells of a failure, and of the same again only on request.
func (t *teller) fail(e watch.Event) {
	text := strings.TrimPrefix(e.Err.Error(), e.Node+": ")
	again := ""
	if e.Retry > 0 {
		again = "; trying again"
	}
	if t.failure[e.Node] == text {
		t.own.Debug("%s: failed again: %s", e.Node, text)
		return
	}
	t.failure[e.Node] = text
	what := ""
	var back *deploy.RolledBackError
	if errors.As(e.Err, &back) && back.Outcome.GetFailedComponent() != "" {
		what = back.Outcome.GetFailedComponent()
		text = strings.TrimPrefix(text, what+": ")
	}
	first, rest, more := strings.Cut(text, "\n")
	if more {
		rest = "\n" + rest
	}
	t.line(e, what, "failed: "+first+again+rest)
}

// line is one on stderr, in the form of those on stdout.
func (t *teller) line(e watch.Event, what, text string) {
	prefix := e.Time.Format(time.TimeOnly)
	if e.Node != "" && len(t.documents) > 1 {
		prefix += " " + e.Node
	}
	if what != "" {
		prefix += " " + what + " "
	}
	t.own.Info("%s %s", prefix, text)
}

func exitText(err error) string {
	var failed *build.FailedError
	if errors.As(err, &failed) && failed.ExitCode >= 0 {
		return fmt.Sprintf("exit code %d", failed.ExitCode)
	}
	return err.Error()
}

// result prints what a push came to on stdout.
func (t *teller) result(e watch.Event) {
	result, ok := e.Result.(pushResult)
	if !ok || e.Kind != watch.Pushed && e.Kind != watch.RolledBack {
		return
	}
	t.story.Suspend(func() {
		if !t.app.inText() {
			_ = t.app.records(t.app.streams.Out).write(result.NodeResult) // stdout is gone: there is nobody to tell
			return
		}
		page := t.app.page()
		prefix := e.Time.Format(time.TimeOnly) + " "
		if len(t.documents) > 1 {
			prefix += e.Node + " "
		}
		for _, c := range told(result.Components) {
			fmt.Fprintln(page, prefix+c.Line(result.order.Built[c.Name]))
		}
	})
}

// told are the components that something was done about, all if to none.
func told(components []*deploy.ComponentResult) []*deploy.ComponentResult {
	var some []*deploy.ComponentResult
	for _, c := range components {
		if c.Action != deploy.ActionUnchanged || c.Message != "" {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return components
	}
	return some
}

// watchEvent is a line for tools. Times are in seconds.
type watchEvent struct {
	Time      time.Time `json:"time"`
	Event     string    `json:"event"`
	Node      string    `json:"node,omitempty"`
	Component string    `json:"component,omitempty"`

	Action         deploy.Action      `json:"action,omitempty"`
	SHA256         string             `json:"sha256,omitempty"`
	PreviousSHA256 string             `json:"previousSha256,omitempty"`
	SizeBytes      int64              `json:"sizeBytes,omitempty"`
	SentBytes      int64              `json:"sentBytes,omitempty"`
	Seconds        map[string]float64 `json:"seconds,omitempty"`
	RetrySeconds   float64            `json:"retrySeconds,omitempty"`
	Message        string             `json:"message,omitempty"`
	Output         string             `json:"output,omitempty"` // of a build that failed
}

// event is for tools: one for each component.
func (t *teller) event(e watch.Event) {
	common := watchEvent{Time: e.Time, Event: string(e.Kind), Node: e.Node, RetrySeconds: e.Retry.Seconds(), Message: e.Message}
	if e.Err != nil {
		common.Message = e.Err.Error()
	}
	var failed *build.FailedError
	if errors.As(e.Err, &failed) {
		common.Output = failed.Output
	}
	if e.Took > 0 {
		common.Seconds = map[string]float64{"total": e.Took.Seconds()}
	}
	if result, ok := e.Result.(pushResult); ok && len(result.Components) > 0 && e.Err == nil {
		for _, c := range result.Components {
			t.story.Event(common.of(c, result.order.Built[c.Name]))
		}
		return
	}
	for _, name := range e.Names {
		common.Component = name
		t.story.Event(common)
	}
	if len(e.Names) == 0 {
		t.story.Event(common)
	}
}

// of is the event of one component that was pushed.
func (e watchEvent) of(c *deploy.ComponentResult, built time.Duration) watchEvent {
	e.Component, e.Action, e.SHA256, e.PreviousSHA256, e.Message = c.Name, c.Action, c.SHA256, c.PreviousSHA256, c.Message
	e.Seconds = map[string]float64{
		"total": e.Seconds["total"], "obtain": c.Seconds.Obtain, "transfer": c.Seconds.Transfer,
		"down": c.Seconds.Down, "healthy": c.Seconds.Healthy,
	}
	if built > 0 {
		e.Seconds["build"] = built.Seconds()
	}
	if c.Transfer != nil {
		e.SizeBytes, e.SentBytes = c.Transfer.SizeBytes, c.Transfer.SentBytes
	}
	return e
}

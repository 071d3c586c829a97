package live

import (
	"errors"
	"time"

	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/push/build"
	"github.com/swdt-dev/swdt/internal/push/watch"
)

// eventLine is one line of the output for programs. Durations are in seconds.
type eventLine struct {
	Time      time.Time `json:"time"`
	Event     string    `json:"event"`
	Node      string    `json:"node,omitempty"`
	Component string    `json:"component,omitempty"`

	Action         push.Action        `json:"action,omitempty"`
	SHA256         string             `json:"sha256,omitempty"`
	PreviousSHA256 string             `json:"previousSha256,omitempty"`
	SizeBytes      int64              `json:"sizeBytes,omitempty"`
	SentBytes      int64              `json:"sentBytes,omitempty"`
	Seconds        map[string]float64 `json:"seconds,omitempty"`
	RetrySeconds   float64            `json:"retrySeconds,omitempty"`
	Message        string             `json:"message,omitempty"`
	Output         string             `json:"output,omitempty"` // of a build that failed
}

// event writes a line for each component, or one line if the event names no component.
func (n *Narrator) event(e watch.Event) {
	common := eventLine{Time: e.Time, Event: string(e.Kind), Node: e.Node, RetrySeconds: e.Retry.Seconds(),
		Message: e.Message}
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
	if result, ok := e.Result.(Result); ok && len(result.Components) > 0 && e.Err == nil {
		for _, c := range result.Components {
			n.Story.Event(common.of(c, result.order.Built[c.Name]))
		}
		return
	}
	for _, name := range e.Names {
		common.Component = name
		n.Story.Event(common)
	}
	if len(e.Names) == 0 {
		n.Story.Event(common)
	}
}

// of returns the line of one component that was pushed.
func (e eventLine) of(c *push.ComponentResult, built time.Duration) eventLine {
	e.Component, e.Action, e.SHA256, e.PreviousSHA256, e.Message = c.Name, c.Action, c.SHA256,
		c.PreviousSHA256, c.Message
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

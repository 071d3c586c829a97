package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// change is the change of one service from its present state to another.
type change struct {
	*subject
	from    observed
	to      logSettings
	options Options
}

// run makes the changes on the node, in one transaction that restarts each service once.
func run(ctx context.Context, n *node.Node, changes []change, r ui.Reporter) error {
	if len(changes) == 0 {
		return nil
	}
	swap := &agentv1.SwapPlan{Holder: changes[0].options.Holder}
	var names []string
	for _, c := range changes {
		component, err := c.stage(ctx, n)
		if err != nil {
			return errors.Join(err, unstage(ctx, n, swap))
		}
		swap.Components = append(swap.Components, component)
		names = append(names, c.name)
	}
	r.Step("restarting %s", strings.Join(names, " and "))
	_, began, err := push.Transact(ctx, n, swap, r)
	if err != nil && !began {
		err = errors.Join(&notBegunError{err}, unstage(ctx, n, swap))
	}
	return explain(strings.Join(names, " and "), err)
}

// unstage removes the files that were staged for a transaction that did not begin.
func unstage(ctx context.Context, n *node.Node, swap *agentv1.SwapPlan) error {
	var errs []error
	for _, component := range swap.GetComponents() {
		if component.GetStaged() != "" {
			errs = append(errs, smallfile.Remove(ctx, n, component.GetStaged()))
		}
	}
	return errors.Join(errs...)
}

// stage returns the part of the transaction that makes the change. If the configuration changes,
// stage first writes the new configuration beside the old one.
func (c change) stage(ctx context.Context, n *node.Node) (*agentv1.SwapComponent, error) {
	component := c.component()
	if c.from.path == "" || c.from.sum() == c.to.sum() {
		return component, nil
	}
	content := c.to.Config
	if !c.to.Exists {
		content = []byte(newConfig) // a transaction cannot remove a file; removeStopgap removes it
	}
	component.Sha256, component.PreviousSha256 = tracerecord.Sum(content, true), c.from.sum()
	component.Staged = layout.Staged(c.from.path, component.GetSha256())
	if err := smallfile.Replace(ctx, n, component.GetStaged(), content, ""); err != nil {
		return nil, &notBegunError{err}
	}
	return component, nil
}

func (c change) component() *agentv1.SwapComponent {
	destination := c.from.path
	if destination == "" {
		// without a configuration file, destination is the program, which stays unchanged
		destination = commandline.Split(c.from.CommandLine)[0]
	}
	health := c.health()
	component := &agentv1.SwapComponent{
		Name: c.name, Service: c.name, Destination: destination,
		DependsOn:   v1alpha1.DefaultDependsOn(c.name),
		Health:      &agentv1.Health{Timeout: durationpb.New(health.Timeout.Duration)},
		Settle:      durationpb.New(health.Settle.Duration),
		StopTimeout: durationpb.New(health.StopTimeout.Duration),
	}
	if !health.None {
		component.Health.HttpGet, component.Health.CriPipe = health.HTTPGet, health.CRIPipe
	}
	if c.from.CommandLine != c.to.CommandLine {
		component.CommandLine = c.to.CommandLine
	}
	return component
}

// health returns the node file's health check for the service. If the node file has none, or none
// with a timeout, health returns the default.
func (c change) health() v1alpha1.Health {
	for _, p := range c.options.Spec.Provisioners {
		if strings.EqualFold(p.Name, c.name) && p.Health != nil && p.Health.Timeout != nil {
			return *p.Health
		}
	}
	return v1alpha1.DefaultHealth(c.name)
}

// makeLogFolder makes the folder that a service logs to.
func makeLogFolder(ctx context.Context, n *node.Node, commandLine string) error {
	file := strings.ReplaceAll(commandline.Flag(commandLine, "log-file"), "/", `\`)
	end := strings.LastIndex(file, `\`)
	if end <= len(`C:`) { // the file is in the drive's root, or its path is not absolute
		return nil
	}
	if _, err := n.Files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: file[:end]}); err != nil &&
		!errors.Is(err, fault.ErrExist) {
		return fmt.Errorf("make the folder for the log: %w", err)
	}
	return nil
}

func running(is observed) bool {
	return is.service.GetStatus().GetState() == agentv1.ServiceState_SERVICE_STATE_RUNNING
}

// RolledBackError reports that a service did not start with the change, and that the transaction
// was rolled back.
type RolledBackError struct {
	Service string
	Err     *push.RolledBackError
}

func (e *RolledBackError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s did not come up with the change: %s; ", e.Service, e.Err.Outcome.GetMessage())
	if e.Err.Complete() {
		b.WriteString("its configuration and command line are back")
	} else {
		b.WriteString("its configuration and command line are back, but not everything runs that ran before: see " +
			"`swdt status`")
	}
	for _, c := range e.Err.Outcome.GetComponents() {
		if len(c.GetLogLines()) > 0 {
			b.WriteString("\nits last log lines:\n  " + strings.Join(c.GetLogLines(), "\n  "))
		}
	}
	return b.String()
}

func (e *RolledBackError) Unwrap() error { return e.Err }

// notBegunError reports a change that did not begin.
type notBegunError struct{ err error }

func (e *notBegunError) Error() string { return e.err.Error() }
func (e *notBegunError) Unwrap() error { return e.err }

// explain wraps a rollback's error in a *RolledBackError, which names the service that
// caused it, or all services of the transaction if no single one is the cause.
func explain(names string, err error) error {
	var back *push.RolledBackError
	if errors.As(err, &back) {
		return &RolledBackError{Service: orElse(back.Outcome.GetFailedComponent(), names), Err: back}
	}
	return err
}

// blames reports whether err means that a transaction was rolled back completely because of this
// service. The change of the other service can then be tried alone.
func blames(err error, service string) bool {
	var back *RolledBackError
	return errors.As(err, &back) && back.Service == service && back.Err.Complete()
}

// unchanged reports whether err means that the settings on the node are unchanged.
func unchanged(err error) bool {
	var back *RolledBackError
	var notBegun *notBegunError
	return errors.As(err, &back) || errors.As(err, &notBegun)
}

package push

import (
	"context"
	"fmt"
	"path"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// A ProgramError reports that a push would leave the program that runs as it is: the component's
// service runs another file than the one at the destination, or runs an unknown one, or has another
// name. Nothing was changed.
type ProgramError struct{ text string }

func (e *ProgramError) Error() string { return e.text }

func programErrorf(format string, args ...any) error {
	return &ProgramError{fmt.Sprintf(format, args...)}
}

// checkProgram returns a *ProgramError if the component's binary would not run after the push.
// services are the names of the node's services.
func (w *work) checkProgram(c seen, services []string) error {
	switch {
	case w.options.Registers:
		return nil
	case c.state.GetService() == nil:
		return w.checkName(c, services)
	case c.misplaced() != "":
		return programErrorf("service %s runs %s, and destination is %s: set destination: %s, or service: none to place "+
			"the file without a restart", c.spec.RunBy(), c.misplaced(), c.spec.Destination, c.misplaced())
	case c.state.GetStarts() == nil && c.state.GetRunning() == nil && c.spec.Service == "":
		return programErrorf("swdt does not know whether service %s runs %s: %s; if it does, set service: %s, "+
			"else service: none", c.spec.RunBy(), c.spec.Destination, c.state.GetProgram().GetUnknown(), c.spec.RunBy())
	case w.options.Strict && !w.options.Start && c.isStopped():
		return fmt.Errorf("service %s is stopped, and would not run the new binary: --start starts it", c.spec.RunBy())
	}
	return nil
}

// misplaced returns the file that the component's service runs instead of the file at the
// destination; "": it runs that file, or an unknown one.
func (c seen) misplaced() string {
	runs := c.state.GetStarts() // a push ends with a start
	if runs == nil && !c.state.GetOutdated() {
		runs = c.state.GetRunning()
	}
	if runs.GetDestination() {
		return ""
	}
	return runs.GetPath()
}

// runsOther returns the file that the component's service runs now, or runs from its next start,
// instead of the file at the destination; "": it runs that file, or an unknown one.
func (c seen) runsOther() string {
	if running := c.state.GetRunning(); running != nil && !running.GetDestination() && !c.state.GetOutdated() {
		return running.GetPath()
	}
	return c.misplaced()
}

// checkName returns a *ProgramError if the component's service exists under another name.
func (w *work) checkName(c seen, services []string) error {
	if c.spec.RunBy() == "" || c.isWrapper() {
		return nil
	}
	if by := c.runBy(w.components); by != "" {
		return programErrorf("service %s runs %s, and there is no service %s: set name: %s or service: %s, or service: none "+
			"to place the file without a restart", by, c.spec.Destination, c.spec.RunBy(), by, by)
	}
	if len(c.state.GetRunBy()) > 0 {
		return nil
	}
	if meant := c.similar(services); meant != "" {
		return programErrorf("there is no service %s; did you mean %s? Set name: %s or service: %s, or service: none to place "+
			"the file without a restart", c.spec.RunBy(), meant, meant, meant)
	}
	if w.options.Strict || c.spec.Service != "" {
		return programErrorf("there is no service %s: correct the name, or set service: none to place the file without a restart", c.spec.RunBy())
	}
	return nil
}

// runBy returns the service of another name that runs the component's file; "": none does. A service
// may rightly run several files: that of the component of its name, if all has one, and wrappers.
func (c seen) runBy(all []*component) string {
	for _, by := range c.state.GetRunBy() {
		known := false
		for _, other := range all {
			known = known || !other.joined && strings.EqualFold(other.spec.RunBy(), by)
		}
		if !known {
			return by
		}
	}
	return ""
}

// similar returns the service that the component's name probably means; "": none.
func (c seen) similar(services []string) string {
	for _, service := range services {
		name, is := strings.ToLower(c.spec.RunBy()), strings.ToLower(service)
		// kubectl, three edits from kubelet, is a program of its own.
		if config.EditDistance(name, is) <= len(name)/8+1 && len(name) > 3 {
			return service
		}
	}
	return ""
}

// notStarted returns the message that nothing runs the component's new file yet; "": its service runs it.
func (c seen) notStarted() string {
	by := c.state.GetRunBy()
	switch {
	case c.isStopped():
		return fmt.Sprintf("service %s was stopped before, and stays stopped: %s starts it", c.spec.RunBy(),
			remedy.Command("push", c.spec.Name, "--start"))
	case c.state.GetService() != nil:
		return ""
	case len(by) > 0 && c.spec.RunBy() != "":
		return fmt.Sprintf("service %s runs this file, and uses the new one from its next start", by[0])
	case c.spec.RunBy() == "":
		return "the file is placed and nothing is restarted"
	}
	return fmt.Sprintf("there is no service %s: the file is placed and nothing is restarted", c.spec.RunBy())
}

// isStopped reports whether the component has a service that is stopped.
func (c seen) isStopped() bool {
	return c.state.GetService().GetState() == agentv1.ServiceState_SERVICE_STATE_STOPPED
}

// isWrapper reports whether the component's program runs the program of another component, and so
// never has a service of its own name.
func (c seen) isWrapper() bool {
	return strings.EqualFold(path.Base(strings.ReplaceAll(c.spec.Destination, `\`, "/")), "kube-log-runner.exe")
}

// services returns the names of the node's services if a component lacks its own, since it then may
// have another name; else nil.
func (w *work) services(components []seen) []string {
	for _, c := range components {
		if names := c.state.GetServices(); len(names) > 0 && !w.options.Registers && !c.joined {
			return names
		}
	}
	return nil
}

// startStopped starts the components' services that are stopped.
func (w *work) startStopped(ctx context.Context, all differences) error {
	for _, d := range all {
		if !d.isStopped() {
			continue
		}
		if err := w.start(ctx, d); err != nil {
			return d.fail(fmt.Errorf("%w; %s puts the previous binary back", err, remedy.Command("rollback", d.spec.Name)))
		}
		d.addMessage("service " + d.spec.RunBy() + " was stopped before")
	}
	return nil
}

// start starts the component's service, and waits until it runs.
func (w *work) start(ctx context.Context, d *difference) error {
	w.reporter.Step("starting %s", d.spec.RunBy())
	reply, err := w.node.Services.Start(ctx, &agentv1.StartServiceRequest{Name: d.spec.RunBy()})
	if err != nil {
		return err
	}
	d.result.Service = serviceOf(reply.GetStatus())
	w.result.Result = Changed
	return nil
}

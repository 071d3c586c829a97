package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

const (
	startTimeout = time.Minute
	stopTimeout  = time.Minute
	// deletedIn bounds the wait for a service that is marked for deletion: such a service exists
	// until all programs that have opened the service, such as services.msc, close it.
	deletedIn = 30 * time.Second
)

// service returns a service; nil if it does not exist.
func service(ctx context.Context, n *node.Node, name string) (*agentv1.ServiceReply, error) {
	reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
	if errors.Is(err, fault.ErrNoService) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at service %s: %w", name, err)
	}
	return reply, nil
}

func running(s *agentv1.ServiceReply) bool {
	return s.GetStatus().GetState() == agentv1.ServiceState_SERVICE_STATE_RUNNING
}

// registrationChange returns the change that registers a service as wanted.
func registrationChange(is *agentv1.ServiceReply, wanted *agentv1.ServiceConfig) plan.Change {
	name := wanted.GetName()
	before, after := is.GetConfig().GetCommandLine(), wanted.GetCommandLine()
	switch {
	case is == nil:
		return plan.Change{Needed: true, Summary: "register the service " + name, Detail: after}
	case before != after:
		return plan.Change{Needed: true, Summary: "change the service " + name + ": " + argumentsChange(before, after),
			Detail: before + " → " + after}
	case !sameRegistration(is.GetConfig(), wanted):
		return plan.Change{Needed: true, Summary: "change how the service " + name + " is started and restarted"}
	}
	return plan.Change{}
}

// sameRegistration reports whether a registration has the wanted start type and recovery settings,
// and at least the wanted dependencies. Recovery settings that the machine cannot report (Wine)
// count as equal.
func sameRegistration(is, wanted *agentv1.ServiceConfig) bool {
	for _, needed := range wanted.GetDependencies() {
		if !containsFold(is.GetDependencies(), needed) {
			return false
		}
	}
	return is.GetStartType() == wanted.GetStartType() &&
		(is.GetRecovery() == nil || sameRecovery(is.GetRecovery(), wanted.GetRecovery()))
}

// register registers a service as wanted, with its own variables. If the service exists with another command line or with
// other variables, register records that the service must be restarted.
func (j *joining) register(ctx context.Context, n *node.Node, wanted *agentv1.ServiceConfig) error {
	name := wanted.GetName()
	is, err := service(ctx, n, name)
	if err != nil {
		return err
	}
	configured := wanted
	if is != nil {
		if configured, err = underTrace(ctx, n, is, wanted); err != nil {
			return err
		}
	}
	r, err := load(ctx, n)
	if err != nil {
		return err
	}
	variables, err := j.environmentChange(ctx, n, r, name)
	if err != nil {
		return err
	}
	err = update(ctx, n, func(r *record) {
		if r.service(name) == nil {
			r.Services = append(r.Services, serviceRecord{Name: name, Before: registered(is)})
		}
		r.service(name).Variables = variables.ours
		if j.ranges != nil {
			r.Ranges = j.ranges
		}
		if is != nil && (is.GetConfig().GetCommandLine() != wanted.GetCommandLine() || variables.needed()) {
			r.addRestart(name)
		}
	})
	if err != nil {
		return err
	}
	if is == nil {
		err = create(ctx, n, wanted)
	} else if _, err = n.Services.Configure(ctx, configured); err != nil {
		err = fmt.Errorf("change the service %s: %w", name, err)
	}
	if err != nil || !variables.needed() {
		return err
	}
	return variables.after.writeTo(ctx, n, name)
}

// create registers a service, once a deleted service of that name has really
// disappeared.
func create(ctx context.Context, n *node.Node, wanted *agentv1.ServiceConfig) error {
	err := wait.Condition{
		Name:     "the deleted service of this name to be gone",
		Interval: pollInterval,
		Limit:    deletedIn,
		// Look ignores its own context, so that the limit does not interrupt a registration.
		Look: func(context.Context) error {
			_, err := n.Services.Create(ctx, wanted)
			if err == nil {
				return nil
			}
			return wait.StopIf(!errors.Is(err, fault.ErrServiceDeleting), err)
		},
	}.Wait(ctx)
	if err != nil {
		return fmt.Errorf("register the service %s: %w", wanted.GetName(), err)
	}
	return nil
}

func registered(is *agentv1.ServiceReply) *registration {
	if is == nil {
		return nil
	}
	c := is.GetConfig()
	return &registration{CommandLine: c.GetCommandLine(), StartType: word.Of(c.GetStartType()),
		Dependencies: c.GetDependencies(), DisplayName: c.GetDisplayName(), Description: c.GetDescription(),
		Recovery: recoveryBefore(c.GetRecovery())}
}

// restart stops a service, with the services that depend on it, and starts the service again. It
// records the dependent services in the machine's record; the step kubelet starts them later.
func restart(ctx context.Context, n *node.Node, name string) error {
	dependents, err := runningDependents(ctx, n, name)
	if err != nil {
		return err
	}
	if err := update(ctx, n, func(r *record) { r.addRestart(dependents...) }); err != nil {
		return err
	}
	if err := stop(ctx, n, name); err != nil {
		return err
	}
	return start(ctx, n, name)
}

// runningDependents returns the running services that stop with this one, because they depend on it
// directly or indirectly. A service comes before the services that were found as its dependents.
func runningDependents(ctx context.Context, n *node.Node, name string) ([]string, error) {
	var all []string
	var walk func(name string) error
	walk = func(name string) error {
		s, err := service(ctx, n, name)
		if err != nil || s == nil {
			return err
		}
		for _, dependent := range s.GetDependents() {
			d, err := service(ctx, n, dependent)
			if err != nil {
				return err
			}
			if d == nil || !running(d) || containsFold(all, dependent) {
				continue
			}
			all = append(all, dependent)
			if err := walk(dependent); err != nil {
				return err
			}
		}
		return nil
	}
	return all, walk(name)
}

// stop stops a service and the services that depend on it. A stopped or missing service is
// not an error.
func stop(ctx context.Context, n *node.Node, name string) error {
	_, err := n.Services.Stop(ctx, &agentv1.StopServiceRequest{Name: name, Timeout: durationpb.New(stopTimeout)})
	if err != nil && !errors.Is(err, fault.ErrNoService) && !errors.Is(err, fault.ErrServiceStopped) {
		return fmt.Errorf("stop the service %s: %w", name, err)
	}
	return nil
}

// start starts a service. It is not an error if the service is already running.
func start(ctx context.Context, n *node.Node, name string) error {
	_, err := n.Services.Start(ctx, &agentv1.StartServiceRequest{Name: name, Timeout: durationpb.New(startTimeout)})
	if err != nil && !errors.Is(err, fault.ErrServiceRunning) {
		return fmt.Errorf("start the service %s: %w", name, err)
	}
	return nil
}

// serviceUndoChange returns the change that an undo makes to a service.
func serviceUndoChange(r record, name string) plan.Change {
	s := r.service(name)
	switch {
	case s == nil:
		return plan.Change{}
	case s.Before != nil:
		return plan.Change{Needed: true, Summary: "register the service " + name + " as before: " +
			s.Before.CommandLine}
	}
	return plan.Change{Needed: true, Summary: "stop and remove the service " + name}
}

// unregister stops a service that swdt registered. It then removes the service or, if the
// service existed before, restores its previous registration.
func unregister(ctx context.Context, n *node.Node, name string) error {
	r, err := load(ctx, n)
	if err != nil {
		return err
	}
	s := r.service(name)
	if s == nil {
		return nil
	}
	if err := stop(ctx, n, name); err != nil {
		return err
	}
	if s.Before != nil {
		if err = registerAsBefore(ctx, n, name, *s.Before); err == nil {
			err = restoreEnvironment(ctx, n, s)
		}
	} else if _, err = n.Services.Delete(ctx, &agentv1.DeleteServiceRequest{Name: name}); errors.Is(err,
		fault.ErrNoService) || errors.Is(err, fault.ErrServiceDeleting) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("take the service %s back: %w", name, err)
	}
	return update(ctx, n, func(r *record) {
		r.dropService(name)
		r.dropRestart(name)
	})
}

// registerAsBefore restores a registration. A description stays if the service had none.
func registerAsBefore(ctx context.Context, n *node.Node, name string, b registration) error {
	_, err := n.Services.Configure(ctx, &agentv1.ServiceConfig{
		Name: name, CommandLine: b.CommandLine, DisplayName: b.DisplayName, Description: b.Description,
		Dependencies: b.Dependencies, NoDependencies: len(b.Dependencies) == 0,
		StartType: word.Value[agentv1.StartType](b.StartType), Recovery: b.Recovery.message(),
	})
	return err
}

// RestartService restarts a service of a node, and starts the services that depend on it and that ran before. It
// waits until all of them run. Once the first one is stopped, it starts them even if ctx ends.
func RestartService(ctx context.Context, n *node.Node, name string) error {
	dependents, err := runningDependents(ctx, n, name)
	if err != nil {
		return err
	}
	defer interrupt.AllowTime(ctx, stopTimeout+startTimeout)()
	ctx = context.WithoutCancel(ctx)
	failed := stop(ctx, n, name)
	for _, each := range append([]string{name}, dependents...) {
		failed = errors.Join(failed, start(ctx, n, each))
	}
	return failed
}

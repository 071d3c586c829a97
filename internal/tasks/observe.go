package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/cri"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
)

const (
	// DefaultWindow is between the two looks at the processes whose difference is
	// the CPU time that they use. Windows counts it in steps of 15.6 ms.
	DefaultWindow = time.Second
	// runtimePatience is how long the runtime may take to answer: the rest of the
	// table does not need it.
	runtimePatience = 10 * time.Second
)

// Options choose how a node is looked at.
type Options struct {
	Pipe   string        // of the container runtime; default containerd's
	Window time.Duration // default DefaultWindow
}

// Observer looks at one node, once or again and again.
type Observer struct {
	node    *node.Node
	options Options
	before  sample // of the last look
}

// NewObserver asks nothing yet.
func NewObserver(n *node.Node, o Options) *Observer {
	if o.Pipe == "" {
		o.Pipe = cri.DefaultPipe
	}
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	return &Observer{node: n, options: o}
}

// Look gives the table of now. The window began with the last look, or begins with
// this one.
func (o *Observer) Look(ctx context.Context) (Table, error) {
	if len(o.before.processes) == 0 {
		first, err := o.sample(ctx)
		if err != nil {
			return Table{}, err
		}
		o.before = first
	}
	over := time.NewTimer(o.options.Window)
	defer over.Stop()
	f := facts{before: o.before}
	var err error
	if f.services, f.folders, err = o.services(ctx); err != nil {
		return Table{}, err
	}
	f.runtime = o.runtime(ctx)
	select {
	case <-over.C:
	case <-ctx.Done():
		return Table{}, ctx.Err()
	}
	if f.after, err = o.sample(ctx); err != nil {
		return Table{}, err
	}
	o.before = f.after
	return f.table(), nil
}

// Forget the last look: the node was away meanwhile.
func (o *Observer) Forget() { o.before = sample{} }

func (o *Observer) sample(ctx context.Context) (sample, error) {
	reply, err := o.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return sample{}, fmt.Errorf("list the processes: %w", err)
	}
	return newSample(reply), nil
}

// services gives all services, and the folders of the runtime.
func (o *Observer) services(ctx context.Context) ([]*agentv1.ServiceStatus, []string, error) {
	reply, err := o.node.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("list the services: %w", err)
	}
	folders := runtimeFolders()
	runtime, err := o.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "containerd"})
	if err != nil && !errors.Is(err, host.ErrNoService) {
		return nil, nil, fmt.Errorf("look at the service containerd: %w", err)
	}
	if words := commandline.Split(runtime.GetConfig().GetCommandLine()); len(words) > 0 {
		if folder := folderOf(words[0]); folder != "" {
			folders = append(folders, folder)
		}
	}
	return reply.GetServices(), folders, nil
}

// runtime asks the runtime; that it does not answer is an answer.
func (o *Observer) runtime(ctx context.Context) runtimeAnswer {
	ctx, cancel := context.WithTimeoutCause(ctx, runtimePatience, errSilent)
	defer cancel()
	answer, err := askRuntime(ctx, o.node, o.options.Pipe)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		err = fmt.Errorf("ask %s: %w", o.options.Pipe, errSilent)
	}
	answer.err = err
	return answer
}

var errSilent = fmt.Errorf("the container runtime does not answer within %s", runtimePatience)

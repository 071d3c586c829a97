package owners

import (
	"context"
	"errors"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// DefaultWindow is the time between the two samples from which CPU usage is computed.
// Windows counts CPU time in steps of 15.6 ms.
const DefaultWindow = time.Second

// Options are the options of an Observer.
type Options struct {
	Pipe   string        // pipe of the container runtime; default: containerd's pipe
	Window time.Duration // default DefaultWindow
}

// Observer makes tables of one node, once or repeatedly.
type Observer struct {
	node    *node.Node
	options Options
	before  sample // the sample of the last Observe
}

// NewObserver returns an Observer of the node. It does not contact the node.
func NewObserver(n *node.Node, o Options) *Observer {
	if o.Pipe == "" {
		o.Pipe = cri.DefaultPipe
	}
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	return &Observer{node: n, options: o}
}

// Observe waits for Options.Window, and returns the table at the end of the wait. CPU usage is the
// mean since the previous Observe. The first Observe, and the first one after Forget, also sample
// the processes before they wait.
func (o *Observer) Observe(ctx context.Context) (Table, error) {
	if len(o.before.processes) == 0 {
		first, err := o.sample(ctx)
		if err != nil {
			return Table{}, err
		}
		o.before = first
	}
	over := time.NewTimer(o.options.Window)
	defer over.Stop()
	f, err := o.owners(ctx)
	if err != nil {
		return Table{}, err
	}
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

// Gather returns the table of a node without a wait, so that it knows no CPU usage: Process.Cores is nil.
func Gather(ctx context.Context, n *node.Node) (Table, error) {
	o := NewObserver(n, Options{})
	var err error
	if o.before, err = o.sample(ctx); err != nil {
		return Table{}, err
	}
	f, err := o.owners(ctx)
	if err != nil {
		return Table{}, err
	}
	if f.after, err = o.sample(ctx); err != nil {
		return Table{}, err
	}
	f.instant = true
	return f.table(), nil
}

// owners returns the facts that name the owners of the processes, and the sample before them.
func (o *Observer) owners(ctx context.Context) (f facts, err error) {
	f.before = o.before
	if f.services, f.folders, err = o.services(ctx); err != nil {
		return f, err
	}
	f.runtime = o.runtime(ctx)
	return f, nil
}

// Forget drops the last sample. It is called after the connection to the node was lost.
func (o *Observer) Forget() { o.before = sample{} }

func (o *Observer) sample(ctx context.Context) (sample, error) {
	reply, err := o.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return sample{}, fmt.Errorf("list the processes: %w", err)
	}
	return newSample(reply), nil
}

// services returns all services, and the folders of the runtime's programs.
func (o *Observer) services(ctx context.Context) ([]*agentv1.ServiceStatus, []string, error) {
	reply, err := o.node.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("list the services: %w", err)
	}
	folders := runtimeFolders()
	runtime, err := o.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "containerd"})
	if err != nil && !errors.Is(err, fault.ErrNoService) {
		return nil, nil, fmt.Errorf("read the service containerd: %w", err)
	}
	if words := commandline.Split(runtime.GetConfig().GetCommandLine()); len(words) > 0 {
		if folder := folderOf(words[0]); folder != "" {
			folders = append(folders, folder)
		}
	}
	return reply.GetServices(), folders, nil
}

// runtime asks the container runtime for its pods and containers. If the runtime does not
// answer, the error is a part of the returned answer, and the table lists the error as a
// gap.
func (o *Observer) runtime(ctx context.Context) runtimeAnswer {
	answer, err := askRuntime(ctx, o.node, o.options.Pipe)
	var silent *criclient.SilentError
	if errors.As(err, &silent) {
		err = fmt.Errorf("ask %s: %w", o.options.Pipe, silent)
	}
	answer.err = err
	return answer
}

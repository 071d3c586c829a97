// Package trace makes containerd and kubelet of a node log more, and afterwards restores
// exactly the previous state.
//
//   - logsettings.go: the state on the node; containerd.go, kubelet.go: the wanted state
//   - on.go, off.go: the steps; transaction.go: the change on the node; state.go: the
//     remains of an earlier run
//   - tidy.go: removes files that an interrupted command or a transaction left
//   - status.go, report.go: the state of each service's trace, and the output of `swdt trace status`
//
// A change is one transaction of package swap, even for both services: configuration file and
// command lines change together while the services are stopped. If the services are not
// healthy afterwards, everything is rolled back. If only one of two services has caused the
// rollback, the other service is then changed alone. The guardian on the node carries the
// transaction out, even if the connection breaks. The previous state is copied and recorded
// (package tracerecord) before the transaction begins. So the node always has either the recorded
// state from before or the recorded state from after, and the next command finds out which.
package trace

import (
	"context"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// The services whose log levels can be changed.
const (
	Containerd = "containerd"
	Kubelet    = "kubelet"
)

// Services returns the names of the services whose log levels can be changed, in the order in which
// trace changes them.
func Services() []string { return []string{Containerd, Kubelet} }

// Options select what is changed. Zero fields have defaults.
type Options struct {
	// Services lists some of the names that the function Services returns. Empty: all services that
	// exist on the node.
	Services []string
	// ContainerdLevel is debug, the default, or trace.
	ContainerdLevel string
	// KubeletVerbosity is kubelet's --v. Default DefaultVerbosity.
	KubeletVerbosity string
	// OTLP is the address to which containerd sends spans, such as http://collector:4318. Empty:
	// containerd sends no spans.
	OTLP string
	// Force continues although the service was changed since On: On records the present state as
	// the state that Off will restore, and Off restores the state from before On.
	Force bool
	// NoRestart makes Off restart no service, for callers that stop the services anyway.
	NoRestart bool
	// Spec is spec.kubernetes of the node file, which has the health checks.
	Spec v1alpha1.Kubernetes
	// Holder identifies who changes the node.
	Holder string
}

// DefaultVerbosity is the level that kubelet's developers request in bug reports.
const DefaultVerbosity = "4"

func (o Options) wish(service string) tracerecord.Wish {
	if service == Kubelet {
		return tracerecord.Wish{Level: orElse(o.KubeletVerbosity, DefaultVerbosity)}
	}
	return tracerecord.Wish{Level: orElse(o.ContainerdLevel, "debug"), OTLP: o.OTLP}
}

// On returns the plan that makes services log more. Its steps do not depend on each other.
// If two services change, the first step changes both in one transaction, so that each is
// restarted once although one depends on the other.
func On(n *node.Node, o Options) []plan.Step {
	var steps []plan.Step
	var last *on
	for _, s := range o.subjects() {
		step := &on{node: n, subject: s, options: o}
		if last != nil {
			last.next = step
		}
		steps, last = append(steps, step), step
	}
	return steps
}

// Off returns the plan that restores the previous state, in one transaction as On does.
func Off(n *node.Node, o Options) []plan.Step {
	var steps []plan.Step
	var last *off
	for _, s := range o.subjects() {
		step := &off{node: n, subject: s, options: o}
		if last != nil {
			last.next = step
		}
		steps, last = append(steps, step), step
	}
	return steps
}

// subject is a service whose log level can be changed.
type subject struct {
	name string
	// named reports whether the user named this service. If named is true and the service does not
	// exist, that is an error.
	named bool
	// config returns the path of the service's configuration, from its command line; nil: trace
	// changes no configuration file of this service.
	config func(commandLine string) (string, error)
	// withLevel returns the state in which the service logs as wished. base is the state without
	// the trace. version is the version of containerd, or "" if neither spans nor a byte order mark
	// need it. withLevel does not
	// contact the node.
	withLevel func(base logSettings, wish tracerecord.Wish, version string) (logSettings, error)
	// level returns the log level of a state, in words.
	level func(logSettings) string
}

func (o Options) subjects() []*subject {
	all := []*subject{
		{name: Containerd, config: containerdConfig, withLevel: containerdWithLevel, level: containerdLevel},
		{name: Kubelet, withLevel: kubeletWithLevel, level: kubeletLevel},
	}
	if len(o.Services) == 0 {
		return all
	}
	var named []*subject
	for _, s := range all {
		for _, name := range o.Services {
			if strings.EqualFold(name, s.name) && !s.named {
				s.named = true
				named = append(named, s)
			}
		}
	}
	return named
}

func load(ctx context.Context, n *node.Node) (tracerecord.Record, error) {
	return tracerecord.Load(ctx, func(ctx context.Context, path string) ([]byte,
		error) {
		return smallfile.Read(ctx, n, path)
	})
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

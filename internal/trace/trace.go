// Package trace makes containerd and kubelet of a node log more, and puts back
// exactly what was there before.
//
//   - standing.go: what stands on the node; containerd.go, kubelet.go: what is to
//   - on.go, off.go: the steps; transaction.go: how the node gets from one to the
//     other; state.go: what an earlier run left
//   - status.go: what is on
//
// A change is one transaction of package swap, also that of both services: the
// configuration file and the command lines change together while the services are
// stopped; they must be healthy afterwards, and else all is put back. Where one of
// two services does not come up, the other is changed alone. The guardian on the node sees to that,
// whatever becomes of the connection. What was there before is copied and written
// down (trace/record) before the transaction begins; therefore what stands on the
// node is always what is written down as before or as after, and whoever comes
// next finds out which.
package trace

import (
	"context"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

// The services whose logs can be switched.
const (
	Containerd = "containerd"
	Kubelet    = "kubelet"
)

// Services are those, in the order in which they are switched.
func Services() []string { return []string{Containerd, Kubelet} }

// Options say what is switched. Zero fields have defaults.
type Options struct {
	// Services are some of Services(). Empty: those of them that the node has.
	Services []string
	// ContainerdLevel is debug, the default, or trace.
	ContainerdLevel string
	// KubeletVerbosity is kubelet's --v. Default DefaultVerbosity.
	KubeletVerbosity string
	// OTLP is where containerd sends spans: http://collector:4318. Empty: nowhere.
	OTLP string
	// Force goes on although somebody changed since what On changed: On takes what
	// is there now for what Off is to put back, and Off puts back what was there
	// before On.
	Force bool
	// NoRestart has Off leave the services as they run: for who stops them anyway.
	NoRestart bool
	// Spec is the node file's, for the health checks it has.
	Spec v1alpha1.Kubernetes
	// Holder names who changes the node.
	Holder string
}

// DefaultVerbosity is what kubelet's developers ask for in bug reports.
const DefaultVerbosity = "4"

func (o Options) wish(service string) record.Wish {
	if service == Kubelet {
		return record.Wish{Level: orElse(o.KubeletVerbosity, DefaultVerbosity)}
	}
	return record.Wish{Level: orElse(o.ContainerdLevel, "debug"), OTLP: o.OTLP}
}

// On is the plan that makes services log more. No step needs another; where two
// services change, the first step changes both in one transaction, so that each is
// restarted once although one depends on the other.
func On(o Options) []plan.Step {
	var steps []plan.Step
	var last *on
	for _, s := range o.subjects() {
		step := &on{subject: s, options: o}
		if last != nil {
			last.next = step
		}
		steps, last = append(steps, step), step
	}
	return steps
}

// Off is the plan that puts back what was there before, in one transaction as On.
func Off(o Options) []plan.Step {
	var steps []plan.Step
	var last *off
	for _, s := range o.subjects() {
		step := &off{subject: s, options: o}
		if last != nil {
			last.next = step
		}
		steps, last = append(steps, step), step
	}
	return steps
}

// subject is a service whose logs can be switched.
type subject struct {
	name string
	// named is set where somebody asked for this one: then it must be there.
	named bool
	// config is where the service's configuration is, by its command line; nil: it
	// is of no interest.
	config func(commandLine string) (string, error)
	// talk is what must stand on the node for it to log as wished, made of what
	// stands there without the trace. It asks no node.
	talk func(base standing, wish record.Wish, version string) (standing, error)
	// level is how much it logs with what stands there, in words.
	level func(standing) string
}

func (o Options) subjects() []*subject {
	all := []*subject{
		{name: Containerd, config: containerdConfig, talk: containerdTalks, level: containerdLevel},
		{name: Kubelet, talk: kubeletTalks, level: kubeletLevel},
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

func load(ctx context.Context, n *node.Node) (record.Record, error) {
	return record.Load(ctx, func(ctx context.Context, path string) ([]byte, error) { return smallfile.Read(ctx, n, path) })
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

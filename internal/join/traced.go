package join

import (
	"context"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/smallfile"
	tracing "github.com/swdt-dev/swdt/internal/trace/record"
)

// traces is what `swdt trace` has changed on the node. A join compares with what
// is there without that: while it wants nothing else, the trace stays on; what it
// wants to change, it does not take from under it.
func traces(ctx context.Context, n *node.Node) (tracing.Record, error) {
	return tracing.Load(ctx, func(ctx context.Context, path string) ([]byte, error) { return smallfile.Read(ctx, n, path) })
}

// compareRegistration compares how a service is registered, but for a trace.
func compareRegistration(ctx context.Context, n *node.Node, wanted *agentv1.ServiceConfig) (*agentv1.ServiceReply, plan.Change, error) {
	is, err := service(ctx, n, wanted.GetName())
	if err != nil {
		return nil, plan.Change{}, err
	}
	if is != nil {
		if _, err := underTrace(ctx, n, is, wanted); err != nil {
			return nil, plan.Change{}, err
		}
	}
	return is, registrationChange(is, wanted), nil
}

// underTrace is how a service is configured that is to be registered as wanted: a
// trace keeps its command line. What is said to be is made what it is without the
// trace.
func underTrace(ctx context.Context, n *node.Node, is *agentv1.ServiceReply, wanted *agentv1.ServiceConfig) (*agentv1.ServiceConfig, error) {
	name, now := wanted.GetName(), is.GetConfig().GetCommandLine()
	r, err := traces(ctx, n)
	if err != nil {
		return nil, err
	}
	plain, traced := r.CommandLine(name, now)
	if !traced {
		return wanted, nil
	}
	if plain != wanted.GetCommandLine() {
		return nil, r.Refuse(name, "its command line")
	}
	is.Config.CommandLine = plain
	kept := proto.CloneOf(wanted)
	kept.CommandLine = now
	return kept, nil
}

// untracedFile is a file as it is without a trace; missing where there would be
// none.
func untracedFile(ctx context.Context, n *node.Node, path string, is []byte) (plain []byte, missing, traced bool, err error) {
	r, err := traces(ctx, n)
	if err != nil {
		return nil, false, false, err
	}
	kept, traced := r.Kept(path, is)
	switch {
	case !traced:
		return is, false, false, nil
	case kept == "":
		return nil, true, true, nil
	}
	plain, err = smallfile.Read(ctx, n, kept)
	return plain, false, true, err
}

func refuse(ctx context.Context, n *node.Node, service, what string) error {
	r, err := traces(ctx, n)
	if err != nil {
		return err
	}
	return r.Refuse(service, what)
}

package join

import (
	"context"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	tracing "github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// traces returns the record of the changes that `swdt trace` has made on the node. A join ignores
// those changes when it compares the node with the wanted state. If it finds no other difference,
// the trace stays on: the join leaves the services and files that the trace has changed as they
// are.
func traces(ctx context.Context, n *node.Node) (tracing.Record, error) {
	return tracing.Load(ctx, func(ctx context.Context, path string) ([]byte, error) {
		return smallfile.Read(ctx, n, path)
	})
}

// compareRegistration compares the registration of a service, without the changes of a trace,
// and its own variables with the wanted ones.
func (j *joining) compareRegistration(ctx context.Context, n *node.Node, r record, wanted *agentv1.ServiceConfig) (
	*agentv1.ServiceReply, plan.Change, error) {
	is, err := service(ctx, n, wanted.GetName())
	if err != nil {
		return nil, plan.Change{}, err
	}
	if is != nil {
		if _, err := underTrace(ctx, n, is, wanted); err != nil {
			return nil, plan.Change{}, err
		}
	}
	change := registrationChange(is, wanted)
	variables, err := j.environmentChange(ctx, n, r, wanted.GetName())
	if err != nil || !variables.needed() {
		return is, change, err
	}
	return is, plan.Change{Needed: true, Detail: change.Detail,
		Summary: summaryWith(change.Summary, variables.summary(wanted.GetName()))}, nil
}

// underTrace returns the registration to make. If no trace has changed the service's command line,
// it returns wanted. If a trace has changed the command line, it returns a copy of wanted with the
// traced command line, so that registering the copy keeps the trace. It then also replaces the
// command line in the present registration (the parameter is) by the command line without the
// trace. If the command line without the trace differs from the wanted one, underTrace returns an
// error.
func underTrace(ctx context.Context, n *node.Node, is *agentv1.ServiceReply,
	wanted *agentv1.ServiceConfig) (*agentv1.ServiceConfig, error) {
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

// untracedFile returns the content that a file would have without a trace. missing reports that the
// file would not exist without the trace; traced reports that a trace has changed the file.
func untracedFile(ctx context.Context, n *node.Node, path string, is []byte) (
	plain []byte, missing, traced bool, err error) {
	r, err := traces(ctx, n)
	if err != nil {
		return nil, false, false, err
	}
	kept, traced := r.Untraced(path, is)
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

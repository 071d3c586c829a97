package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/agentbuild"
	"github.com/swdt-dev/swdt/internal/proof/probebin"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Builder builds the programs that swdt brings to nodes, as agentbuild.Builder does.
type Builder interface {
	Build(ctx context.Context, p agentbuild.Program, r ui.Reporter) (agentbin.Agent, error)
	// Built returns a program that was built before, or agentbuild.ErrNotBuilt.
	Built(ctx context.Context, p agentbuild.Program) (agentbin.Agent, error)
}

// builtAlready is a Builder that builds nothing.
type builtAlready struct{ Builder }

func (b builtAlready) Build(ctx context.Context, p agentbuild.Program, _ ui.Reporter) (agentbin.Agent, error) {
	return b.Built(ctx, p)
}

// agentFor returns the agent for a node: the one inside this swdt, its stand-in for a simulated sandbox, or
// one that is built now.
func (a *app) agentFor(ctx context.Context, document config.Document, r ui.Reporter) (agentbin.Agent, error) {
	inside, missing := a.env.Agent()
	if missing != nil && !errors.Is(missing, agentbin.ErrNotEmbedded) {
		return inside, missing
	}
	if agent, ok, err := sandbox.AgentOf(a.accessTo(document), inside); ok || err != nil {
		return agent, err
	}
	if missing == nil {
		return inside, nil
	}
	return a.env.Builder.Build(ctx, agentbuild.Agent(), r)
}

// accessTo returns how a node is reached.
func (a *app) accessTo(document config.Document) sandbox.Access {
	c := document.Node.Spec.Credentials
	if c.Kubernetes != nil {
		return sandbox.Access{Kubeconfig: cmp.Or(document.Resolve(c.Kubernetes.Kubeconfig), a.env.Getenv("KUBECONFIG"))}
	}
	return sandbox.Access{PrivateKey: document.Resolve(c.PrivateKey), HostKey: c.HostKey}
}

// probes returns a function that returns swdt-probe for a system and a processor: the one inside this swdt, or
// one that is built now.
func (a *app) probes(ctx context.Context, r ui.Reporter) func(system, processor string) ([]byte, error) {
	return func(system, processor string) ([]byte, error) {
		inside, err := probebin.Embedded(system, processor)
		var missing *probebin.MissingError
		if !errors.As(err, &missing) || !slices.Contains(probebin.Targets(), system+"/"+processor) {
			return inside, err
		}
		built, err := a.env.Builder.Build(ctx, agentbuild.Probe(system, processor), r)
		if err != nil {
			return nil, err
		}
		body, err := built.Open()
		if err != nil {
			return nil, err
		}
		defer body.Close()
		return io.ReadAll(body)
	}
}

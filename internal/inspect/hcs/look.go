package hcs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Systems has a node's compute systems, and the pods and containers that may own them.
type Systems struct {
	All     []System
	Owners  []Owner
	Runtime bool // reports whether the container runtime listed the owners
}

// Look lists the compute systems of a node, and the pods and containers that may own them.
// If the node's container runtime does not answer, the owners stay unknown and r gets a
// warning.
func Look(ctx context.Context, n *node.Node, pipe string, r ui.Reporter) (found Systems, err error) {
	found.All, err = List(ctx, n.Compute)
	if errors.Is(err, fault.ErrNotSupported) {
		err = fmt.Errorf("%w; this Windows has no Host Compute Service, which comes with the feature Containers: "+
			"`swdt setup` installs it", err)
	}
	if err != nil {
		return found, err
	}
	found.Owners, err = ownersOn(ctx, n, pipe, r)
	if ctx.Err() != nil {
		return found, ctx.Err()
	}
	if found.Runtime = err == nil; err != nil {
		r.Warn("the owners of compute systems are unknown, since the container runtime does not answer: %v", err)
	}
	return found, nil
}

func ownersOn(ctx context.Context, n *node.Node, pipe string, r ui.Reporter) (owners []Owner, err error) {
	client, err := criclient.Open(ctx, n, pipe, criclient.Options{Reconnect: r, Limit: criclient.AnswerLimit})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return Owners(ctx, client.Runtime)
}

// Owner returns the pod (NAMESPACE/POD) and the container that own a compute system. The pod
// is hns.None if the system has no owner, and hns.Unknown if the runtime did not list the
// owners.
func (c Systems) Owner(s System) (pod, container string) {
	o, ok := OwnerOf(c.Owners, s)
	switch {
	case ok:
		return o.Pod, o.Container
	case c.Runtime:
		return hns.None, ""
	}
	return hns.Unknown, ""
}

// Find finds a compute system by its ID or by its owner.
func (c Systems) Find(name string) (System, error) {
	system, err := FindSystem(c.All, name)
	var unknown *NotFoundError
	if !errors.As(err, &unknown) {
		return system, err
	}
	// The runtime also lists pod sandboxes and containers that have ended, so Find first searches
	// the owners that have a compute system.
	live := slices.DeleteFunc(slices.Clone(c.Owners), func(o Owner) bool { _, there := c.of(o); return !there })
	owner, err := FindOwner(live, name, false)
	if errors.As(err, &unknown) {
		owner, err = FindOwner(c.Owners, name, false)
	}
	if err != nil {
		return System{}, err
	}
	if system, there := c.of(owner); there {
		return system, nil
	}
	return System{},
		fmt.Errorf("%s (%s) is no compute system of this node: it is a HostProcess container, is in a utility VM or "+
			"has ended; `swdt hcs list` lists the compute systems",
			owner, Short(owner.ID))
}

// of returns the compute system of an owner, and whether there is one.
func (c Systems) of(owner Owner) (System, bool) {
	for _, s := range c.All {
		if _, ok := OwnerOf([]Owner{owner}, s); ok {
			return s, true
		}
	}
	return System{}, false
}

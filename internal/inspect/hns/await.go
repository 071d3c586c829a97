package hns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wait"
)

// awaitInterval is the time between two looks at a node's networks.
const awaitInterval = 2 * time.Second

// NoNetworkError reports that the Host Network Service of a node lacks a network.
type NoNetworkError struct {
	Name  string
	Found []string // the names of the networks that exist
}

func (e *NoNetworkError) Error() string {
	found := "it has none"
	if len(e.Found) > 0 {
		found = "it has " + strings.Join(e.Found, ", ")
	}
	return fmt.Sprintf("HNS has no network %s (%s); the pod network's program on the node makes it: `swdt logs list` "+
		"lists its logs", e.Name, found)
}

// FindNetwork returns the network with this name. If the node has no such network, the error is a
// *NoNetworkError.
func FindNetwork(ctx context.Context, compute agentv1.ComputeClient, name string) (Network, error) {
	state, err := Read(ctx, compute)
	if err != nil {
		return Network{}, err
	}
	missing := &NoNetworkError{Name: name}
	for _, n := range state.Networks {
		if n.Name == name {
			return n, nil
		}
		missing.Found = append(missing.Found, n.Name)
	}
	slices.Sort(missing.Found)
	return Network{}, missing
}

// AwaitNetwork waits at most limit until a node has the network with this name. Each time the
// network is not there yet, AwaitNetwork passes the reason for the wait to the given function.
func AwaitNetwork(ctx context.Context, compute agentv1.ComputeClient, name string, limit time.Duration,
	report func(state string)) (found Network, err error) {
	err = wait.Condition{
		Name: "the HNS network " + name, Interval: awaitInterval, Limit: limit,
		Look: func(ctx context.Context) (err error) {
			found, err = FindNetwork(ctx, compute, name)
			return err
		},
		Pending: func(state error) { report(state.Error()) },
	}.Wait(ctx)
	return found, err
}

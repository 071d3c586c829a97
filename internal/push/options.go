// Package push brings binaries onto a node. It compares the node file with the node, stages
// the binaries that differ while the services still run, and makes the node replace all of
// them in one transaction (package swap, on the node). It follows the transaction to its end,
// across lost connections.
//
// A push is a sequence of stages. Each stage has its own type, which is made from the type of the
// previous stage: component, seen, difference, staging. So the types of a function's parameters
// show which stages come before the function.
//
//   - push.go: `swdt push` from beginning to end
//   - work.go: the components of a push, and its end; sources.go: their binaries
//   - inspect.go: the node as it is; pending.go: transactions that an interrupted push left
//   - decide.go: the differences; versions.go: the versions that binaries report
//   - stage.go: new binaries to the node; companion.go: files that go with them
//   - part.go: the parts of a transaction; follow.go: the transaction until its end
//   - cluster.go: the node as the API server sees it, before and after
//   - rollback.go, backto.go, restart.go, configure.go, status.go, history.go: the commands of these names
//   - result.go, text.go: the results, and how they are printed
package push

import (
	"context"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
)

// Options are the options of Push and Rollback; one value serves many nodes.
type Options struct {
	// Sources obtains binaries; share one between nodes. nil: the push makes one.
	Sources *source.Set
	// Depot makes pushes send differences instead of whole files; share one between
	// nodes. nil: whole files.
	Depot *transfer.Depot
	// Only are the components to push; empty: all in the node file.
	Only []string
	// Force restarts a component's service although nothing differs.
	Force bool
	// Strict makes an unexpected version an error, before anything is stopped; and so a service that
	// is stopped or does not exist.
	Strict bool
	// Registers reports that the caller registers the services after the push: they need not run the
	// files at the destinations yet.
	Registers bool
	// Start starts the services that were stopped before the push, after it.
	Start bool
	// RefuseSkips makes a file that differs, and that its component's overwrite: false protects, an
	// error, before anything is changed.
	RefuseSkips bool
	// DryRun reports what the push would do, and changes nothing.
	DryRun bool
	// Record is called with the components that the push is about to change, as they are now, before
	// anything is changed; also if there is none. An error ends the push. nil: not called.
	Record func(ctx context.Context, changing []Former) error
	// Companions is called once the new binaries are on the node. staged has the paths of the new
	// binaries that will replace others, by component name. Companions returns the files to
	// exchange in the same transaction. With Force, staged may be empty. nil: none.
	Companions func(ctx context.Context, staged map[string]string) ([]Companion, error)
	// Commit is called once everything is on the node, before anything is stopped. If it returns
	// false, the push ends with a *SupersededError and leaves the node unchanged. nil: continue.
	Commit func() bool
	// Healthy is called once everything that was replaced is healthy, before the new
	// binaries are asked for their version. nil: not called.
	Healthy func()
	// Cluster is asked, after the swap, whether the node is Ready with a lease that its new kubelet
	// renewed. If that is not the case, the push puts the previous binaries back. nil: the push
	// does not ask an API server.
	Cluster Cluster
	// Drain makes the push evict the node's pods before it stops anything; pods may
	// return afterwards. nil: pods are not evicted.
	Drain *cluster.DrainOptions
	// Holder identifies who changes the node, for other users that want to change it.
	// Empty: the result of plan.Holder.
	Holder string
	// KeepJournal leaves the journal of this Holder's transaction on the node. A later command with the
	// same Holder then finds its end again, until the caller, who has reported it, calls Acknowledge.
	KeepJournal bool
	// Locked reports that the caller holds the node's lock, and keeps it after the push.
	Locked bool
}

package host

import "context"

// NetworkKind is a kind of object that the Host Network Service keeps.
type NetworkKind string

const (
	HNSNetworks      NetworkKind = "networks"
	HNSEndpoints     NetworkKind = "endpoints"
	HNSNamespaces    NetworkKind = "namespaces"
	HNSLoadBalancers NetworkKind = "loadbalancers"
)

// HCSSystems is the kind of the Host Compute Service's objects, where both services'
// are asked for by their kind.
const HCSSystems = "systems"

// Compute is what Windows runs containers with: the Host Network Service (HNS)
// and the Host Compute Service (HCS). Their objects are JSON documents, which are
// given as they are: to read them is not the node's business.
type Compute interface {
	// NetworkObjects returns the Host Network Service's objects of a kind, as
	// documents of schema 2; those that went away meanwhile are left out. A kind
	// that there is none of, and a machine without the service, is
	// ErrNotSupported.
	NetworkObjects(ctx context.Context, kind NetworkKind) ([][]byte, error)
	// Systems returns every compute system: containers and utility VMs.
	// ErrNotSupported on a machine without the Host Compute Service.
	Systems(ctx context.Context) ([]ComputeSystem, error)
	// Terminate ends a compute system with all that runs in it, and may return
	// before it has ended. One that is not there, or stopped already, is
	// ErrNotExist.
	Terminate(ctx context.Context, id string) error
}

// ComputeSystem is one, as the Host Compute Service tells of it.
type ComputeSystem struct {
	ID string
	// Summary is its entry in the list of all.
	Summary []byte
	// Properties has what it uses and its processes; empty where it did not tell.
	Properties []byte
	// Failure is why it did not tell.
	Failure string
}

package platform

import "context"

// NetworkKind is a kind of object that the Host Network Service stores.
type NetworkKind string

const (
	HNSNetworks      NetworkKind = "networks"
	HNSEndpoints     NetworkKind = "endpoints"
	HNSNamespaces    NetworkKind = "namespaces"
	HNSLoadBalancers NetworkKind = "loadbalancers"
)

// Compute queries the Windows services that run containers: the Host Network Service (HNS) and the Host Compute
// Service (HCS). Their objects are JSON documents, which the agent returns unchanged; your machine parses them.
type Compute interface {
	// NetworkObjects returns the Host Network Service's objects of a kind, as documents of schema 2, without
	// objects that were deleted during the call. For an unknown kind, and on a machine without the service, the
	// error is fault.ErrNotSupported.
	NetworkObjects(ctx context.Context, kind NetworkKind) ([][]byte, error)
	// Remove deletes a network, an endpoint or a load balancer. If it does not exist, the error is fault.ErrNotExist.
	// For another kind, and on a machine without the service, it is fault.ErrNotSupported. The deletion of a network
	// interrupts the connections of the adapter that the network uses.
	Remove(ctx context.Context, kind NetworkKind, id string) error
	// Systems returns every compute system: containers and utility VMs. On a machine without the Host Compute
	// Service, the error is fault.ErrNotSupported.
	Systems(ctx context.Context) ([]ComputeSystem, error)
	// Terminate ends a compute system with everything that runs in it, and may return before the system has ended.
	// If the system does not exist, or has stopped already, the error is fault.ErrNotExist.
	Terminate(ctx context.Context, id string) error
}

// ComputeSystem is a container or utility VM, as the Host Compute Service reports it.
type ComputeSystem struct {
	ID string
	// Summary is the system's entry in the service's list of all systems.
	Summary []byte
	// Properties is the document with the system's resource usage and processes. It is empty if the
	// service did not return such a document.
	Properties []byte
	// Failure is the reason why the service did not return Properties.
	Failure string
}

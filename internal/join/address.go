package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/hnsnetwork"
)

const nodeIPFlag = "node-ip"

// address returns the addresses that kubelet is to report if the node file and kubeadm name none: the one from which the
// machine connects to the API server and, in a dual-stack cluster, one of the other family. "" leaves the choice to
// kubelet. On Windows, kubelet only looks up the Node's name, so it finds no address if the computer has another name,
// and takes the first one of several adapters; and without an address, `kubectl logs` and pods that ask for the host's
// address fail on a node that is Ready.
// (kubernetes v1.36.3, pkg/kubelet/nodestatus/setters.go; WMCO passes --node-ip always, pkg/services/services.go)
func (j *joining) address(ctx context.Context, n *node.Node) (string, error) {
	_, ofUser := j.spec.Kubelet.ExtraArgs[nodeIPFlag]
	if j.image || ofUser || j.spec.Join.NodeIP != "" || j.source != "" {
		return j.source, nil
	}
	source, reached, err := j.sourceToAPIServer(ctx, n)
	if err != nil {
		return "", err
	}
	if !reached { // nothing is known; a kubelet that has an address keeps it
		return j.registeredAddress(ctx, n)
	}
	ofHNS, err := hnsnetwork.AddressesOf(ctx, n)
	if err != nil {
		return "", err
	}
	// The API server is on this machine, as a stand-in of one may be, or behind a network of HNS.
	if !usable(source, ofHNS) {
		if source, err = j.addressOfComputer(ctx, n, ofHNS); err != nil {
			return "", err
		}
	}
	if j.source, err = j.withOtherFamily(ctx, n, source, ofHNS); err != nil {
		return "", err
	}
	return j.source, nil
}

func usable(address string, ofHNS hnsnetwork.Addresses) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && preflight.UsableAddress(address) && !ofHNS.Has(ip)
}

// withOtherFamily adds the machine's address of the other family in a dual-stack cluster, in which a Node has addresses of
// both: the one from which it reaches that Node.
func (j *joining) withOtherFamily(ctx context.Context, n *node.Node, source string, ofHNS hnsnetwork.Addresses) (string,
	error) {
	own, err := netip.ParseAddr(source)
	if err != nil || j.options.Cluster == nil || !j.allowsPair() {
		return source, nil
	}
	nodes, err := j.options.Cluster.Nodes(ctx)
	if _, forbidden := errors.AsType[*cluster.ForbiddenError](err); forbidden {
		return source, nil // a join needs no list of the nodes otherwise
	}
	if err != nil {
		return "", fmt.Errorf("find out whether the cluster is dual-stack: %w", err)
	}
	const mostTries = 3 // each may take reachWithin
	tries := 0
	for _, other := range nodes {
		at, dual := otherFamily(other, own)
		if !dual || other.Name == j.name || tries == mostTries {
			continue
		}
		tries++
		port := "10250" // kubelet's
		if _, control := other.Labels["node-role.kubernetes.io/control-plane"]; control {
			_, port, _ = net.SplitHostPort(j.endpoint())
		}
		reply, err := n.Network.Reach(ctx, &agentv1.ReachRequest{Address: net.JoinHostPort(at, port),
			Timeout: durationpb.New(reachWithin)})
		if err != nil {
			return "", fmt.Errorf("find the node's address towards %s: %w", at, err)
		}
		if second, err := netip.ParseAddr(reply.GetSource()); err == nil && second.Is4() != own.Is4() &&
			usable(reply.GetSource(), ofHNS) {
			return source + "," + reply.GetSource(), nil
		}
	}
	return source, nil
}

// otherFamily returns the address of a Node of the other family than own. dual is false if the Node has not one of each.
func otherFamily(n cluster.Node, own netip.Addr) (other string, dual bool) {
	same := false
	for _, a := range n.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		switch {
		case err != nil || a.Type != corev1.NodeInternalIP:
		case ip.Is4() == own.Is4():
			same = true
		case other == "":
			other = a.Address
		}
	}
	return other, same && other != ""
}

// allowsPair reports whether this kubelet accepts an address of each family: without a cloud provider always, with an
// external one since 1.29, and with another one never (component-helpers v0.36.3, node/util/ips.go; gate
// CloudDualStackNodeIPs). Windows makes no difference to it.
func (j *joining) allowsPair() bool {
	switch j.spec.Kubelet.ExtraArgs["cloud-provider"] {
	case "":
		return true
	case "external":
		minor, err := kubeletMinor(j.spec)
		return err == nil && minor >= 29
	}
	return false
}

// sourceToAPIServer returns the machine's own address of a connection to the API server.
func (j *joining) sourceToAPIServer(ctx context.Context, n *node.Node) (source string, reached bool, err error) {
	at := j.endpoint()
	if at == "" {
		return "", false, nil
	}
	// The hosts file gets the alias in a later step than the first look.
	if host, port, err := net.SplitHostPort(at); err == nil {
		if alias := j.spec.Join.ControlPlaneAlias; alias != nil && strings.EqualFold(alias.Name, host) {
			at = net.JoinHostPort(alias.IP, port)
		}
	}
	reply, err := n.Network.Reach(ctx, &agentv1.ReachRequest{Address: at, Timeout: durationpb.New(reachWithin)})
	if err != nil {
		return "", false, fmt.Errorf("find the node's address towards the API server at %s: %w", at, err)
	}
	return reply.GetSource(), reply.GetOutcome() == agentv1.ReachOutcome_REACH_OUTCOME_REACHED, nil
}

// registeredAddress returns the address with which the service kubelet is registered; "": none.
func (j *joining) registeredAddress(ctx context.Context, n *node.Node) (string, error) {
	is, err := service(ctx, n, kubeletName)
	if err != nil || is == nil {
		return "", err
	}
	flags, _ := kubeletargs.Flags(commandline.Split(is.GetConfig().GetCommandLine()))
	return flags[nodeIPFlag], nil
}

// addressOfComputer returns the address that kubelet would find for the computer's own name; "" if the machine has
// none, as under Wine.
func (j *joining) addressOfComputer(ctx context.Context, n *node.Node, ofHNS hnsnetwork.Addresses) (string, error) {
	facts, err := j.machine(ctx, n)
	if err != nil {
		return "", err
	}
	reply, err := n.Network.Resolve(ctx, &agentv1.ResolveRequest{Name: facts.GetHostname()})
	if lost(err) || ctx.Err() != nil {
		return "", fmt.Errorf("resolve the computer's own name: %w", err)
	}
	sixth := ""
	for _, text := range reply.GetAddresses() { // none if the name is not found
		ip, err := netip.ParseAddr(text)
		switch {
		case err != nil || !usable(text, ofHNS):
		case ip.Is4():
			return text, nil
		case sixth == "":
			sixth = text
		}
	}
	return sixth, nil
}

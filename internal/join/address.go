package join

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
)

const nodeIPFlag = "node-ip"

// address returns the address that kubelet is to report if the node file and kubeadm name none: the one from which the
// machine connects to the API server. "" leaves the choice to kubelet. On Windows, kubelet only looks up the Node's
// name, so it finds no address if the computer has another name, and takes the first one of several adapters; and
// without an address, `kubectl logs` and pods that ask for the host's address fail on a node that is Ready.
// (kubernetes v1.36.3, pkg/kubelet/nodestatus/setters.go; WMCO passes --node-ip always, pkg/services/services.go)
func (j *joining) address(ctx context.Context, n *node.Node) (string, error) {
	_, ofUser := j.spec.Kubelet.ExtraArgs[nodeIPFlag]
	if j.image || ofUser || j.spec.Join.NodeIP != "" || j.source != "" {
		return j.source, nil
	}
	source, reached, err := j.sourceToAPIServer(ctx, n)
	switch {
	case err != nil:
		return "", err
	case !reached: // nothing is known; a kubelet that has an address keeps it
		return j.registeredAddress(ctx, n)
	case !preflight.UsableAddress(source): // the API server is on this machine, as a stand-in of one may be
		if source, err = j.addressOfComputer(ctx, n); err != nil {
			return "", err
		}
	}
	j.source = source
	return source, nil
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
func (j *joining) addressOfComputer(ctx context.Context, n *node.Node) (string, error) {
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
		case err != nil || !preflight.UsableAddress(text):
		case ip.Is4():
			return text, nil
		case sixth == "":
			sixth = text
		}
	}
	return sixth, nil
}

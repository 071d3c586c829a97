package join

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// On an overlay network whose program keeps no address for kube-proxy, as flannel does, kube-proxy's source address is one
// of the node's pods' range that no pod has. The CNI plug-in host-local, which assigns the addresses of pods, reserves it,
// as the scripts of sig-windows-tools do (hostprocess/flannel/kube-proxy/start.ps1 before 729ae7c).
const (
	hostLocal     = "host-local.exe"
	hostLocalData = "/var/lib/cni/networks" // its default, in which it also has the addresses of pods
	// reservedFor and reservedAs stand for a pod's container and interface.
	reservedFor = "swdt-kube-proxy"
	reservedAs  = "source-vip"
)

// reservation is an address that the join has reserved for kube-proxy, or was about to: then it has no address.
type reservation struct {
	Network string `json:"network"` // the HNS network, which is the name in the CNI configuration
	Subnet  string `json:"subnet"`
	Address string `json:"address,omitempty"`
}

// addressIn returns the reserved address if it is one of the subnet, otherwise "".
func (r *reservation) addressIn(subnet string) string {
	if r == nil || r.Subnet != subnet {
		return ""
	}
	return r.Address
}

// undoChange returns what a removal does about the reservation.
func (r *reservation) undoChange() plan.Change {
	if r == nil {
		return plan.Change{}
	}
	return plan.Change{Needed: true, Summary: "give kube-proxy's source address back"}
}

// reserves reports whether the join must reserve kube-proxy's source address in the network.
func (j *joining) reserves(found PodNetwork) bool {
	return strings.EqualFold(found.Type, overlay) && found.SourceVIP == "" && found.Subnet != "" &&
		!strings.EqualFold(j.choice.Network, v1alpha1.CalicoPlugin)
}

// reserve reserves a source address in the subnet, and records it. An earlier reservation, also one whose address was not
// recorded any more, is given back first. If the plug-in is missing, the error is one to wait for.
func (j *joining) reserve(ctx context.Context, n *node.Node, subnet string) error {
	if err := j.release(ctx, n); err != nil {
		return wait.StopIf(ctx.Err() == nil, err)
	}
	wanted := &reservation{Network: j.choice.HNSNetwork, Subnet: subnet}
	if err := update(ctx, n, func(r *record) { r.SourceVIP = wanted }); err != nil {
		return wait.Stop(err)
	}
	var reply struct {
		IPs []struct{ Address string }
	}
	if err := j.askHostLocal(ctx, n, "ADD", *wanted, &reply); err != nil {
		return wait.StopIf(ctx.Err() == nil && !errors.Is(err, fault.ErrNotExist), err)
	}
	if len(reply.IPs) == 0 {
		return wait.Stop(fmt.Errorf("reserve kube-proxy's source address in %s: %s returned no address", subnet, hostLocal))
	}
	address, err := netip.ParsePrefix(reply.IPs[0].Address)
	if err != nil {
		return wait.Stop(fmt.Errorf("reserve kube-proxy's source address in %s: %w", subnet, err))
	}
	done := *wanted
	done.Address = address.Addr().String()
	if err := update(ctx, n, func(r *record) { r.SourceVIP = &done }); err != nil {
		return wait.Stop(err)
	}
	return nil
}

// release gives the reserved address back. Without the plug-in, nothing has its addresses any more.
func (j *joining) release(ctx context.Context, n *node.Node) error {
	r, err := load(ctx, n)
	if err != nil || r.SourceVIP == nil {
		return err
	}
	if err := j.askHostLocal(ctx, n, "DEL", *r.SourceVIP, nil); err != nil && !errors.Is(err, fault.ErrNotExist) {
		return &addressKeptError{*r.SourceVIP, err}
	}
	return update(ctx, n, func(r *record) { r.SourceVIP = nil })
}

// addressKeptError reports an address that host-local did not take back.
type addressKeptError struct {
	reservation
	err error
}

func (e *addressKeptError) Error() string {
	file := strings.ReplaceAll("C:"+hostLocalData, "/", `\`) + `\` + e.Network
	if e.Address == "" {
		return fmt.Sprintf("%v; an address may stay reserved: remove the file below %s that has %s", e.err, file, reservedFor)
	}
	return fmt.Sprintf(`%v; the address stays reserved: remove %s\%s`, e.err, file, e.Address)
}

func (e *addressKeptError) Unwrap() error { return e.err }

// askHostLocal runs the plug-in with a command of CNI, and decodes its reply into into, unless it is nil. The error is
// fault.ErrNotExist if the node has no such program.
func (j *joining) askHostLocal(ctx context.Context, n *node.Node, verb string, r reservation, into any) error {
	request, err := json.Marshal(map[string]any{"cniVersion": "0.3.0", "name": r.Network, "ipam": map[string]any{
		"type": "host-local", "dataDir": hostLocalData,
		"ranges": []any{[]any{map[string]any{"subnet": r.Subnet}}}}})
	if err != nil {
		return err
	}
	folder := j.spec.Containerd.CNI.BinDirectory
	what := "reserve kube-proxy's source address in " + r.Subnet
	if verb == "DEL" {
		what = "give kube-proxy's source address in " + r.Subnet + " back"
	}
	what += ": " + hostLocal + " " + verb
	var out, failed bytes.Buffer
	code, err := command.Run(ctx, n.Processes, &agentv1.RunCommand{Path: folder + `\` + hostLocal, Environment: []string{
		"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + reservedFor, "CNI_NETNS=" + reservedFor, "CNI_IFNAME=" + reservedAs,
		"CNI_PATH=" + folder,
	}}, command.Streams{Stdin: bytes.NewReader(request), Stdout: &out, Stderr: &failed})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return fmt.Errorf("%s: %w; the pod network's programs for Windows bring it to %s", what, err, folder)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case code != 0:
		return fmt.Errorf("%s: exit code %d: %s", what, code, strings.Join(strings.Fields(out.String()+" "+failed.String()), " "))
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("%s: read its reply: %w", what, err)
	}
	return nil
}

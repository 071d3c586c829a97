package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/vfp"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// vfpctrl is Windows' tool for the virtual filtering platform of the virtual switch.
const vfpctrl = "vfpctrl.exe"

// VFPError reports that vfpctrl failed.
type VFPError struct {
	Args   []string
	Code   int
	Output string
}

func (e *VFPError) Error() string {
	return fmt.Sprintf("vfpctrl %s ended with exit code %d: %s", strings.Join(e.Args, " "), e.Code,
		strings.TrimSpace(e.Output))
}

// SwitchPort is a port of the virtual switch, with the counters of the virtual filtering
// platform.
type SwitchPort struct {
	vfp.Port
	Endpoint string // ID of the HNS endpoint that uses the port; empty: none
	Pod      string // NAMESPACE/NAME of the endpoint's pod, hns.None or hns.Unknown
	Counters []vfp.Counters
	Raw      string // vfpctrl's output, if swdt found no counter in it
}

// SwitchPorts returns the ports of a node's virtual switches, without counters.
func SwitchPorts(ctx context.Context, programs Programs) ([]SwitchPort, error) {
	ports, _, err := askVFP(ctx, programs, vfp.ParsePorts, "/list-vmswitch-port")
	var all []SwitchPort
	for _, port := range ports {
		all = append(all, SwitchPort{Port: port, Pod: hns.Unknown})
	}
	return all, err
}

// Count reads the port's counters.
func (p *SwitchPort) Count(ctx context.Context, programs Programs) (err error) {
	var printed string
	p.Counters, printed, err = askVFP(ctx, programs, vfp.ParseCounters, "/port", p.Name, "/get-port-counter")
	if len(p.Counters) == 0 {
		p.Raw = strings.TrimSpace(strings.ReplaceAll(printed, "\r", ""))
	}
	return err
}

// OwnPorts sets the endpoints and pods of ports. A port belongs to the endpoint whose ID is the
// port's label or name. If there is no such endpoint, the port belongs to the endpoint with the
// port's MAC address. A port without an endpoint gets the pod hns.None.
func OwnPorts(ports []SwitchPort, state hns.State, known hns.Known) {
	for i := range ports {
		p := &ports[i]
		p.Pod = hns.None
		for _, is := range []func(hns.Endpoint) bool{
			func(e hns.Endpoint) bool { return strings.EqualFold(e.ID, p.Label) || strings.EqualFold(e.ID, p.Name) },
			func(e hns.Endpoint) bool { return p.MAC != "" && plainMAC(e.MAC) == plainMAC(p.MAC) },
		} {
			if e, ok := localEndpoint(state, is); ok {
				p.Endpoint, p.Pod = e.ID, known.PodOf(e)
				break
			}
		}
	}
}

func localEndpoint(state hns.State, is func(hns.Endpoint) bool) (hns.Endpoint, bool) {
	for _, e := range state.Endpoints {
		if !e.Remote && is(e) {
			return e, true
		}
	}
	return hns.Endpoint{}, false
}

// askVFP runs vfpctrl and requests JSON. If vfpctrl fails, or if its JSON has no entries, askVFP
// requests text.
func askVFP[T any](ctx context.Context, programs Programs, parse func(string) []T, args ...string) (all []T,
	printed string, err error) {
	printed, err = runVFP(ctx, programs, append(args, "/format", "1")...)
	var refused *VFPError
	if err != nil && !errors.As(err, &refused) {
		return nil, "", err
	}
	if all = parse(printed); err == nil && len(all) > 0 {
		return all, printed, nil
	}
	printed, err = runVFP(ctx, programs, args...)
	if err != nil {
		return nil, "", err
	}
	return parse(printed), printed, nil
}

// IsGUID reports whether text is 8-4-4-4-12 hexadecimal digits.
func IsGUID(text string) bool {
	parts := strings.Split(text, "-")
	if len(parts) != 5 {
		return false
	}
	for i, length := range []int{8, 4, 4, 4, 12} {
		if len(parts[i]) != length || strings.Trim(strings.ToLower(parts[i]), "0123456789abcdef") != "" {
			return false
		}
	}
	return true
}

func runVFP(ctx context.Context, programs Programs, args ...string) (string, error) {
	var out bytes.Buffer
	code, err := command.Run(ctx, programs, &agentv1.RunCommand{Path: vfpctrl, Args: args},
		command.Streams{Stdout: &out, Stderr: &out})
	if errors.Is(err, fault.ErrNotExist) {
		return "", fmt.Errorf("the node has no vfpctrl.exe, which comes with the virtual switch of Hyper-V or "+
			"Containers: %w", fault.ErrNotSupported)
	}
	if err != nil {
		return "", fmt.Errorf("run vfpctrl: %w", err)
	}
	if code != 0 {
		return "", &VFPError{Args: args, Code: code, Output: out.String()}
	}
	return out.String(), nil
}

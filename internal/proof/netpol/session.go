package netpol

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
)

// serve starts the servers of a pod, and returns their states.
func serve(ctx context.Context, s *probepod.Session, p Pod, ports []Port) ([]netprobe.Served, error) {
	wanted := &netprobe.Serve{Name: p.Name(), Address: p.Address.String()}
	for _, port := range ports {
		wanted.Ports = append(wanted.Ports, onWire(port))
	}
	reply, err := s.Ask(ctx, netprobe.Request{Serve: wanted}, probepod.ReplyMargin)
	if err != nil {
		return nil, err
	}
	if len(reply.Served) != len(ports) {
		return nil, fmt.Errorf("the probe in pod %s answered for %d ports, not %d", p.Name(), len(reply.Served), len(ports))
	}
	for i := range reply.Served {
		reply.Served[i].Error = probepod.Shortened(reply.Served[i].Error)
	}
	return reply.Served, nil
}

// round makes attempts, and returns their results in the order of the targets. The pod's texts are
// checked: outcomes are known, addresses are addresses, and texts are short and printable.
func round(ctx context.Context, s *probepod.Session, from Pod, targets []netprobe.Target, timeout time.Duration) (
	[]netprobe.Result, error) {
	reply, err := s.Ask(ctx, netprobe.Request{Round: &netprobe.Round{TimeoutMS: timeout.Milliseconds(),
		Targets: targets}}, timeout+probepod.ReplyMargin)
	if err != nil {
		return nil, err
	}
	if len(reply.Results) != len(targets) {
		return nil, fmt.Errorf("the probe in pod %s answered for %d targets, not %d", from.Name(), len(reply.Results),
			len(targets))
	}
	for i := range reply.Results {
		r := &reply.Results[i]
		if !slices.Contains(netprobe.Outcomes(), r.Outcome) {
			r.Outcome, r.Text = netprobe.Failed, "the outcome is unknown: "+r.Outcome
		}
		if _, err := netip.ParseAddr(r.Seen); err != nil {
			r.Seen = ""
		}
		r.Text = probepod.Shortened(r.Text)
	}
	return reply.Results, nil
}

func onWire(p Port) netprobe.Port {
	return netprobe.Port{Number: p.Number, Protocol: string(p.Protocol)}
}

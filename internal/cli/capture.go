package cli

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

// captureOptions are the flags of swdt capture.
type captureOptions struct {
	pods, services  []string
	ips, ports      []string
	protocols, macs []string
	components      string
	drops, force    bool
	duration        time.Duration
	maxSize         string
	round           time.Duration
	file            string
	cluster         clusterOptions
	wanted          capture.Options // complete derives it from the fields above
	onStdout, named bool            // -w is "-"; --pod or --service is set
}

// stdoutFile names stdout in a flag that takes a file.
const stdoutFile = capture.StdoutFile

// shortestRound is the smallest --round that complete accepts.
const shortestRound = 500 * time.Millisecond

func (a *app) captureCommand() *cobra.Command {
	o := &captureOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "capture [flags]",
		Short: "Capture packets of nodes and pods, live or as pcapng",
		Long: `Captures packets on nodes with the packet monitor of Windows, pktmon. Without -w
it prints packets as they pass. With -w FILE it writes them as pcapng when the
capture ends: at Ctrl-C, or after --for. A second Ctrl-C leaves the packets on
the node for an hour or until the next capture: swdt capture fetch gets them.

With -w - it writes packets to stdout while it captures, for Wireshark at the
other end of a pipe. pktmon hands out no packets before it stops, so each node
captures in rounds of --round and misses the packets between two rounds.
-w FILE has no such gaps.

With several nodes, FILE has the packets of all nodes, and FILE-NODE beside it
the packets of one node. The name of an interface in the file is
NODE/NAMESPACE/POD for packets of a pod, else NODE/COMPONENT of the network
stack. Dropped packets are in the file too, each with a comment that gives the
reason.

Flags of one kind widen the capture, flags of different kinds narrow it; --pod,
--service and --ip are one kind: --pod a/x --ip 10.0.0.9 --port 53 captures port
53 of both. A Service is captured with its endpoints, since behind the virtual
switch the packets of the Service have the addresses of the endpoints. The
cluster and the node list the endpoints.

pktmon reports a packet once for each component of the network stack that it
passes. --comp nics captures at network adapters alone.

A node has one packet monitor. If another program uses it, swdt does not
capture, unless --force ends the other capture. The node itself ends a capture
of swdt when swdt ends, when the connection breaks, or when its time is over.`,
		Example: examples(
			"capture --port 53", "watch DNS queries",
			"capture --pod default/web-0 --for 30s -w web.pcapng", "",
			"capture --drops", "dropped packets, with the reason",
			"capture --port 53 -w - | wireshark -k -i -", "live in Wireshark",
			"capture counters", "counters, without a capture",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(a.format()); err != nil {
				return err
			}
			return a.runCapture(cmd.Context(), o)
		},
	})
	o.addFlags(a, cmd)
	cmd.AddCommand(a.captureCountersCommand(), a.captureVFPCommand(), a.captureFetchCommand())
	return cmd
}

func (o *captureOptions) addFlags(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.pods, "pod", nil, "only packets of this pod, as `NAMESPACE/NAME`")
	flags.StringSliceVar(&o.services, "service",
		nil, "only packets of this Service, as `NAMESPACE/NAME`, and of its endpoints")
	flags.StringSliceVar(&o.ips, "ip", nil, "only packets from or to this `address` or network (10.244.1.0/24)")
	flags.StringSliceVar(&o.ports, "port", nil, "only packets from or to this `port`")
	flags.StringSliceVar(&o.protocols, "proto", nil,
		"only packets of this `protocol`: tcp, udp, icmp, icmpv6, or a number")
	flags.StringSliceVar(&o.macs, "mac", nil, "only packets from or to this MAC `address`")
	flags.StringVar(&o.components, "comp",
		"", "only at these `components` of the network stack: all, nics, or numbers as `pktmon list` shows them "+
			"(default all)")
	flags.BoolVar(&o.drops, "drops", false, "only packets that were dropped")
	flags.DurationVar(&o.duration, "for", 0, "capture for this `time`, such as 30s (default until Ctrl-C)")
	flags.StringVar(&o.maxSize, "max-size", "512MB",
		"how much a node keeps with -w; beyond this size, the oldest packets go")
	flags.StringVarP(&o.file, "out", "w", "", "`file` to write packets to as pcapng, or - for stdout as they come")
	flags.DurationVar(&o.round, "round", capture.DefaultRound, "with -w -, `time` between two lots of packets")
	flags.BoolVar(&o.force, "force", false, "end a capture even if swdt did not start it, and remove its filters")
	o.cluster.addFlags(cmd)
	must(cmd.MarkFlagFilename("out"))
	must(cmd.RegisterFlagCompletionFunc("pod", listed(a.completePods)))
	must(cmd.RegisterFlagCompletionFunc("service", listed(a.completeServices(&o.cluster))))
	must(cmd.RegisterFlagCompletionFunc("proto", cobra.FixedCompletions([]string{"tcp", "udp", "icmp", "icmpv6"},
		cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("comp", cobra.FixedCompletions([]string{"all", "nics"},
		cobra.ShellCompDirectiveNoFileComp)))
}

// complete checks the flags. It contacts no node.
func (o *captureOptions) complete(format string) error {
	o.wanted = capture.Options{Components: o.components, Drops: o.drops, For: o.duration, Force: o.force,
		Live: o.file == ""}
	o.onStdout, o.named = o.file == stdoutFile, len(o.pods)+len(o.services) > 0
	for flag, names := range map[string][]string{"pod": o.pods, "service": o.services} {
		for _, name := range names {
			if err := capture.ParseName(name); err != nil {
				return usagef("--%s: %v", flag, err)
			}
		}
	}
	if err := o.conditions(); err != nil {
		return err
	}
	size, err := parseMegabytes(o.maxSize)
	switch {
	case err != nil:
		return usagef("--max-size: %v", err)
	case o.duration < 0:
		return usagef("--for %s: use a positive time, such as 30s", o.duration)
	case o.round < shortestRound:
		return usagef("--round %s: use at least %s: the node starts programs in each", o.round, shortestRound)
	case o.onStdout && format != result.Text:
		return usagef("with -w - the packets are on stdout: leave -o %s out", format)
	}
	if o.onStdout {
		o.wanted.Round = o.round
	}
	o.wanted.MaxSize = size
	if o.file != "" && !o.onStdout {
		return checkOutFile("-w", o.file)
	}
	return nil
}

// conditions parses the flags that restrict the captured packets, such as --ip, and stores
// their values in o.wanted.
func (o *captureOptions) conditions() (err error) {
	if o.wanted.Addresses, err = each("ip", o.ips, capture.ParseAddress); err != nil {
		return err
	}
	if o.wanted.Protocols, err = each("proto", o.protocols, capture.ParseProtocol); err != nil {
		return err
	}
	if o.wanted.MACs, err = each("mac", o.macs, capture.ParseMAC); err != nil {
		return err
	}
	if o.wanted.Ports, err = each("port", o.ports, parsePort); err != nil {
		return err
	}
	if err := capture.ParseComponents(o.components); err != nil {
		return usagef("--comp %s: %v", o.components, err)
	}
	return nil
}

// each parses the values of a flag, and names the flag in its error.
func each[T any](flag string, texts []string, parse func(string) (T, error)) (all []T, err error) {
	for _, text := range texts {
		value, err := parse(text)
		if err != nil {
			return nil, usagef("--%s: %v", flag, err)
		}
		all = append(all, value)
	}
	return all, nil
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, usagef("%q is not a port from 1 to 65535", text)
	}
	return uint16(port), nil
}

// parseMegabytes reads 512MB or 2GB. pktmon counts in megabytes.
func parseMegabytes(text string) (int64, error) {
	const megabyte, most = 1 << 20, 1 << 20 // most is a terabyte, counted in megabytes
	upper := strings.ToUpper(strings.TrimSpace(text))
	factor := int64(1)
	number, ok := strings.CutSuffix(upper, "MB")
	if !ok {
		if number, ok = strings.CutSuffix(upper, "GB"); ok {
			factor = 1024
		}
	}
	count, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if !ok || err != nil || count < 1 || count > most/factor {
		return 0, usagef("%q is not a size: write 512MB or 2GB", text)
	}
	return count * factor * megabyte, nil
}

// captureHolder returns the name under which a node records this capture. If another swdt
// finds the node busy, it prints this name.
func captureHolder() string {
	name, err := os.Hostname()
	if err != nil {
		name = "a machine without a name"
	}
	return "swdt on " + name + ", process " + strconv.Itoa(os.Getpid())
}

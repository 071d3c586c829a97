package cli

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/capture"
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
	wanted          capture.Options // what complete makes of the above
	onStdout, named bool            // -w -; --pod or --service
}

// stdoutFile is the name of stdout where a file is asked for.
const stdoutFile = "-"

// shortestRound that --round may ask for.
const shortestRound = 500 * time.Millisecond

func (a *app) captureCommand() *cobra.Command {
	o := &captureOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "capture [flags]",
		Short: "Packets of the node and its pods, live or as pcapng",
		Long: `Captures packets on nodes with Windows' own packet monitor, pktmon. Without -w it
shows packets as they come; with -w FILE it writes them as pcapng when the capture
ends: at Ctrl-C, or when --for is over. A second Ctrl-C leaves the packets on the
node, for an hour and until the next capture: swdt capture fetch.

With -w - packets are on stdout while it captures, for Wireshark at the other end
of a pipe. pktmon gives out none before it is stopped, so each node captures in
rounds of --round; what passes between two rounds is missed. -w FILE has no such gaps.

From several nodes at once -w FILE is all of them, and beside it is FILE-NODE for
each. An interface in it is NODE/NAMESPACE/POD for packets that a pod's adapter has
seen, or that are from or to a pod, else NODE/COMPONENT of the network stack.
Packets that were dropped are in it, too, and a comment says why.

Flags of one kind widen what is captured, those of different kinds narrow it; --pod,
--service and --ip are of one kind: --pod a/x --ip 10.0.0.9 --port 53 is port 53 of
either. Where a Service is asked for, its endpoints are captured with it, since behind
the virtual switch its packets have their addresses; which these are, the cluster
tells and the node.

pktmon sees a packet at every component of the network stack that it passes, and
shows it as often. --comp nics keeps to network adapters.

There is one packet monitor on a node. Where somebody else uses it, swdt does not
capture, unless it is told to end that with --force. A capture always ends: with
swdt, with the connection, with its time; the node sees to that by itself.`,
		Example: examples(
			"capture --port 53", "watch names being asked for",
			"capture --pod default/web-0 --for 30s -w web.pcapng", "",
			"capture --drops", "only packets that were dropped, and why",
			"capture --port 53 -w - | wireshark -k -i -", "see them in Wireshark as they come",
			"capture counters", "what was counted where, without capturing",
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
	flags.StringSliceVar(&o.services, "service", nil, "only packets of this Service, as `NAMESPACE/NAME`, and of its endpoints")
	flags.StringSliceVar(&o.ips, "ip", nil, "only packets from or to this `address` or network (10.244.1.0/24)")
	flags.StringSliceVar(&o.ports, "port", nil, "only packets from or to this `port`")
	flags.StringSliceVar(&o.protocols, "proto", nil, "only packets of this `protocol`: tcp, udp, icmp, icmpv6, or a number")
	flags.StringSliceVar(&o.macs, "mac", nil, "only packets from or to this MAC `address`")
	flags.StringVar(&o.components, "comp", "", "only at these `components` of the network stack: all, nics, or numbers as\n`pktmon list` shows them (default all)")
	flags.BoolVar(&o.drops, "drops", false, "only packets that were dropped")
	flags.DurationVar(&o.duration, "for", 0, "capture for this `time`, such as 30s (default until Ctrl-C)")
	flags.StringVar(&o.maxSize, "max-size", "512MB", "how much a node keeps with -w: beyond it, the oldest packets go")
	flags.StringVarP(&o.file, "out", "w", "", "`file` to write packets to as pcapng, or - for stdout as they come")
	flags.DurationVar(&o.round, "round", capture.DefaultRound, "with -w -, `time` between two lots of packets")
	flags.BoolVar(&o.force, "force", false, "end what somebody else captures on the node, and remove their filters")
	o.cluster.addFlags(cmd)
	must(cmd.MarkFlagFilename("out"))
	must(cmd.RegisterFlagCompletionFunc("pod", listed(a.completePods)))
	must(cmd.RegisterFlagCompletionFunc("proto", cobra.FixedCompletions([]string{"tcp", "udp", "icmp", "icmpv6"}, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("comp", cobra.FixedCompletions([]string{"all", "nics"}, cobra.ShellCompDirectiveNoFileComp)))
}

// complete checks the flags before anything is contacted.
func (o *captureOptions) complete(format string) error {
	o.wanted = capture.Options{Components: o.components, Drops: o.drops, For: o.duration, Force: o.force, Live: o.file == ""}
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
	case o.onStdout && format != formatText:
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

// conditions are what a packet must have, as the flags say.
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

// each reads the values of a flag.
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
	const megabyte, most = 1 << 20, 1 << 20 // a terabyte
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

// fileOf is where one node's packets go where there are several nodes.
func (o *captureOptions) fileOf(node string) string {
	extension := filepath.Ext(o.file)
	return strings.TrimSuffix(o.file, extension) + "-" + node + extension
}

// captureHolder is who captures, for others who would.
func captureHolder() string {
	name, err := os.Hostname()
	if err != nil {
		name = "a machine without a name"
	}
	return "swdt on " + name + ", process " + strconv.Itoa(os.Getpid())
}

// also widens what is captured by addresses of pods and Services.
func (o *captureOptions) also(more []netip.Prefix) {
	o.wanted.Addresses = append(o.wanted.Addresses, more...)
}

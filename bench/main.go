//go:build linux

// Command bench compares swdt with other ways to send a rebuilt binary to a node, on
// this machine, in one run:
//
//   - sizes: patches of real pairs of builds: bytes, seconds, memory
//   - pushes: whole pushes through OpenSSH over shaped links
//   - downtime: how long a service is down, for a small and a large binary
//   - logs: reading a log of a gigabyte: its end, the result of a search, all of it, and
//     following a log while it grows
//   - stats: the cost of watching 200 pods, on this machine and on the node
//   - relay: the time that the relay to a node's container runtime adds to a call
//   - vm: the time to make and to start a VM, compared with QEMU alone
//
// `make bench` builds and installs the requirements and runs all parts. bench writes the
// results to bench/results.json, and the tables and plots of docs/benchmarks.md from them.
//
//   - pairs.go, tools.go, sizes.go: the first part
//   - link.go, sshd.go, sandbox.go, pushes.go: the second
//   - downtime.go: the third
//   - logs.go: the fourth
//   - wineruntime.go, stats.go, relay.go: the fifth and the sixth
//   - vm.go: the seventh
//   - results.go, page.go, plot.go: the stored results, the tables and the plots
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// parts returns the parts in the order in which they run.
func parts() []string { return []string{"sizes", "pushes", "downtime", "logs", "stats", "relay", "vm"} }

type options struct {
	root, lab, swdt string
	parts           []string
	repeat          int
	pairs, links    []string // empty: all
	watchFor        time.Duration
	render          bool
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "the repository")
	flags.StringVar(&o.lab, "lab", "", "the folder that lab/build.sh prints")
	flags.StringVar(&o.swdt, "swdt", "bin/swdt", "the swdt to measure")
	flags.IntVar(&o.repeat, "repeat", 3, "how often to measure; the median counts")
	flags.BoolVar(&o.render, "render", false, "only write docs/benchmarks.md again, from the results that are there")
	flags.DurationVar(&o.watchFor, "watch", statsFor,
		"how long to watch; with another time the results are printed, not stored")
	var chosen, pairs, links string
	flags.StringVar(&chosen, "parts", strings.Join(parts(), ","), "which parts to run")
	flags.StringVar(&pairs, "pairs", "", "the pairs of files; with fewer than all the results are printed, not stored")
	flags.StringVar(&links, "links", "",
		"the links to push over; with fewer than all the results are printed, not stored")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.parts, o.pairs, o.links = split(chosen), split(pairs), split(links)
	for _, part := range o.parts {
		if !slices.Contains(parts(), part) {
			return o, fmt.Errorf("-parts %s: choose from %s", part, strings.Join(parts(), ","))
		}
	}
	if o.repeat < 1 {
		return o, fmt.Errorf("-repeat %d: use 1 or more", o.repeat)
	}
	if o.lab == "" && !o.render {
		return o, fmt.Errorf("-lab is missing: use `make bench`, or -lab \"$(lab/build.sh bench)\"")
	}
	var err error
	if o.swdt, err = filepath.Abs(o.swdt); err != nil {
		return o, err
	}
	return o, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	store := filepath.Join(o.root, "bench", "results.json")
	results, err := readResults(store)
	if err != nil {
		return err
	}
	if !o.render {
		if err := o.measure(ctx, store, &results); err != nil {
			return err
		}
	}
	if o.partial() {
		return nil
	}
	return writePages(filepath.Join(o.root, "docs"), results)
}

// measure runs the parts, and stores the results of each as soon as it ends.
func (o options) measure(ctx context.Context, store string, results *Results) error {
	work, err := os.MkdirTemp("", "swdt-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := &bench{options: o, work: work}
	for _, part := range o.parts {
		var err error
		machine := describeMachine(ctx)
		switch part {
		case "sizes":
			results.Sizes, err = b.sizes(ctx)
			results.Sizes.Machine = machine
		case "pushes":
			results.Pushes, err = b.pushes(ctx)
			results.Pushes.Machine = machine
		case "downtime":
			results.Downtime, err = b.downtime(ctx)
			results.Downtime.Machine = machine
		case "logs":
			results.Logs, err = b.logs(ctx)
			results.Logs.Machine = machine
		case "stats":
			results.Stats, err = b.stats(ctx)
			results.Stats.Machine = machine
		case "relay":
			results.Relay, err = b.relay(ctx)
			results.Relay.Machine = machine
		case "vm":
			results.VM, err = b.vm(ctx)
			results.VM.Machine = machine
		}
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		if o.partial() {
			continue
		}
		if err := results.write(store); err != nil {
			return err
		}
	}
	return nil
}

// partial reports whether the results are only printed and not stored. Results of some pairs or links
// are not stored, since tables with results of several runs would compare what is not comparable.
func (o options) partial() bool { return len(o.pairs)+len(o.links) > 0 || o.watchFor != statsFor }

// bench is one run of the benchmarks.
type bench struct {
	options
	work string // a folder for this run, removed at the end of the run
}

// logf prints progress on stderr.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

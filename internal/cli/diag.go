package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/diag"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/redact"
	"github.com/swdt-dev/swdt/internal/ui"
)

type diagOptions struct {
	cluster     clusterOptions
	profile     diag.Profile
	out         string
	redact      []string
	eventFiles  bool
	nodeTimeout time.Duration
}

func (a *app) diagCommand() *cobra.Command {
	o := &diagOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "diag [flags]",
		Short: "All that is known about nodes in one file, without their secrets",
		Long: fmt.Sprintf(`Gathers facts, services, configuration, logs, events, containers and the network
of all nodes, side by side, into one .tar.gz with a page to look at it (index.html).
Nothing on a node is changed. What cannot be gathered is in the bundle with its
reason, a node that cannot be reached too. Where a kubeconfig is at hand, so is what
the cluster has of each node: its object, its pods, events, RuntimeClasses.

  --profile quick     the node and its cluster's programs; ends of their logs (default)
  --profile network   and all of its network, pods' logs, doctor's findings
  --profile full      and Windows' own logs, packages, drivers; more of each log

Private keys, tokens, passwords, connection strings and what fits --redact are taken
out on the node, before anything leaves it (of names of files, before they are
written); REDACTED stands in their place. What is secret and looks like any other
word is not known to be: look before you send.
* in a pattern stands for any characters but spaces and ", ? for one.

The events are there as a table. --evtx keeps their channels as Event Viewer's files
too, up to 16 MB each. They are binary, nothing can be redacted in them, and what
somebody logged is in them as it is: give them to nobody whom you would not let look
at the node.

At most %d nodes are asked at a time, whatever --parallel says: what is on its way
takes memory.`, diag.MostNodes),
		Example: examples(
			"diag", "swdt-diag-DATE.tar.gz here",
			"diag -n win-1 --profile full -w win-1.tar.gz", "",
			"diag --kubeconfig admin.conf --profile network", "and what the cluster makes of the nodes",
			"diag --redact 'corp-*' --redact 10.20.", "names and addresses that nobody else should see",
			"diag show win-1.tar.gz", "what is in it",
			"diag show win-1.tar.gz win-1 services", "the same table as of the node itself",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDiag(cmd.Context(), o) },
	})
	flags := cmd.Flags()
	o.cluster.addFlags(cmd)
	flags.Var(&o.profile, "profile", "how much is gathered")
	flags.StringVarP(&o.out, "out", "w", "", "`file` to write (default swdt-diag-DATE.tar.gz)")
	flags.StringArrayVar(&o.redact, "redact", nil, "also take out what fits this `pattern`; several times for several")
	flags.BoolVar(&o.eventFiles, "evtx", false, "keep the event channels as .evtx files too, in which nothing is redacted")
	flags.DurationVar(&o.nodeTimeout, "node-timeout", diag.NodeTimeout, "the longest `time` for one node")
	must(cmd.MarkFlagFilename("out", "tar.gz"))
	must(cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(diag.Profiles(), cobra.ShellCompDirectiveNoFileComp)))
	addInOrder(cmd, a.diagShowCommand())
	return cmd
}

// diagReport is the result of `swdt diag`.
type diagReport struct {
	File string `json:"file"` // the bundle
	diag.Manifest
}

func (o *diagOptions) complete(now time.Time) error {
	if o.out == "" {
		o.out = "swdt-diag-" + now.Format("20060102-150405") + ".tar.gz"
	}
	if err := checkOutFile("--out", o.out); err != nil {
		return err
	}
	if _, err := redact.New(o.redact); err != nil {
		return usagef("--redact: %v", err)
	}
	if o.eventFiles && len(o.redact) > 0 {
		return usagef("--evtx keeps files in which nothing can be redacted, and --redact wants something to be: leave one of them out")
	}
	if o.nodeTimeout <= 0 {
		return usagef("--node-timeout %s: use a positive time, such as 5m", o.nodeTimeout)
	}
	return nil
}

func (a *app) runDiag(ctx context.Context, o *diagOptions) error {
	if err := o.complete(time.Now()); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	found, err := a.atHand(ctx, &o.cluster, s.story.Node(""), "nothing of it is in the bundle")
	if err != nil {
		return err
	}
	if o.eventFiles {
		s.story.Node("").Warn("nothing is redacted in the .evtx files of this bundle: mind to whom you give it")
	}
	manifest, err := a.gatherDiag(ctx, s, o, found)
	if err != nil {
		return err
	}
	err = a.print(diagReport{File: o.out, Manifest: manifest}, func(p *ui.Page) error {
		if err := writeDiagNodes(p, manifest); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p, o.out)
		return err
	})
	if err != nil {
		return err
	}
	return diagFailures(manifest)
}

func (a *app) gatherDiag(ctx context.Context, s *session, o *diagOptions, found *cluster.Cluster) (diag.Manifest, error) {
	defer s.story.End()
	return diag.Gather(ctx, s.documents, o.out, diag.Options{
		Profile: o.profile, Redact: o.redact, Version: a.env.Version, Parallel: a.global.parallel,
		NodeTimeout: o.nodeTimeout, Timeout: a.global.timeout, Cluster: found, EventFiles: o.eventFiles, More: a.diagCollectors(), Reporter: s.reporter,
		Connect: func(ctx context.Context, document config.Document, r ui.Reporter) (*node.Node, func(), error) {
			n, err := s.connect(ctx, document, r)
			if err != nil {
				return nil, nil, err
			}
			return n, func() { closeNode(ctx, n) }, nil
		},
	})
}

// diagFailures are the nodes of which there is nothing.
func diagFailures(m diag.Manifest) error {
	failed := &fleet.Error{Total: len(m.Nodes)}
	for _, n := range m.Nodes {
		if n.Result == diag.Failed {
			failed.Failed = append(failed.Failed, fleet.Failure{Name: n.Name, Err: n.Err})
		}
	}
	if len(failed.Failed) == 0 {
		return nil
	}
	return failed
}

func writeDiagNodes(w io.Writer, m diag.Manifest) error {
	var rows [][]string
	for _, n := range m.Nodes {
		row := []string{n.Name, n.Result, n.Windows, "", "", ui.Seconds(time.Duration(n.Seconds * float64(time.Second))), n.Error}
		if len(n.Collectors) > 0 {
			row[3] = fmt.Sprintf("%d of %d", len(n.Collectors)-n.Count(diag.Failed)-n.Count(diag.Late), len(n.Collectors))
		}
		if n.Examined() {
			row[4] = strconv.Itoa(len(n.Findings))
		}
		rows = append(rows, row)
	}
	return ui.Table(w, []string{"NODE", "RESULT", "WINDOWS", "COLLECTORS", "FINDINGS", "TOOK", "MESSAGE"}, rows)
}

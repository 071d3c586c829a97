package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
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
		Short: "Collect a redacted diagnostics bundle from nodes",
		Long: fmt.Sprintf(`Collects facts, services, configuration, logs, events, containers and the
network of all nodes into one .tar.gz with a page to read it (index.html). It
changes nothing on a node. For data that cannot be collected, and for a node
that cannot be reached, the bundle has the reason. With a kubeconfig it also has
the node's objects of the cluster: Node, pods, events, RuntimeClasses.

  --profile quick     the node and the programs of Kubernetes on it, with the
                      ends of their logs (default)
  --profile network   also its whole network, the logs of pods, the findings of
                      swdt doctor
  --profile full      also the logs of Windows, packages, drivers; more of each
                      log; for what its programs wait (diag dump)

Private keys, tokens, passwords, connection strings and matches of --redact are
replaced by REDACTED on the node, before they leave it (in names of files,
before they are written). A secret that looks like any other word cannot be
detected: read the bundle before you send it. In a pattern, * matches any
characters but spaces and ", ? matches one.

Events are in the bundle as a table. --evtx adds their channels as files of the
Event Viewer, up to 16 MB each. These are binary and not redacted: give them
only to people who may log in to the node.

At most %d nodes are asked at a time, whatever --parallel is, to bound memory.`, diag.MostNodes),
		Example: examples(
			"diag", "writes swdt-diag-DATE.tar.gz",
			"diag -n win-1 --profile full -w win-1.tar.gz", "",
			"diag --kubeconfig admin.conf --profile network", "with objects of the cluster",
			"diag --redact 'corp-*' --redact 10.20.", "also names and addresses",
			"diag show win-1.tar.gz", "list its content",
			"diag show win-1.tar.gz win-1 services", "print one table",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDiag(cmd.Context(), o) },
	})
	flags := cmd.Flags()
	o.cluster.addFlags(cmd)
	flags.Var(&o.profile, "profile", "how much is gathered")
	flags.StringVarP(&o.out, "out", "w", "", "`file` to write (default swdt-diag-DATE.tar.gz)")
	flags.StringArrayVar(&o.redact, "redact", nil, "also redact text that matches this `pattern`; repeat the flag for more")
	flags.BoolVar(&o.eventFiles, "evtx",
		false, "keep the event channels as .evtx files too, in which nothing is redacted")
	flags.DurationVar(&o.nodeTimeout, "node-timeout", diag.NodeTimeout, "the longest `time` for one node")
	must(cmd.MarkFlagFilename("out", "tar.gz"))
	must(cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(diag.Profiles(),
		cobra.ShellCompDirectiveNoFileComp)))
	addInOrder(cmd, a.diagShowCommand(), a.diagDumpCommand())
	return cmd
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
		return usagef("--evtx adds files in which nothing can be redacted, which contradicts --redact: " +
			"leave one of them out")
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
	found, err := a.optionalCluster(ctx, &o.cluster, s.story.Node(""), "nothing of it is in the bundle")
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
	report := diag.Report{File: o.out, Manifest: manifest}
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return manifest.Failures()
}

func (a *app) gatherDiag(ctx context.Context, s *session, o *diagOptions, found *cluster.Cluster) (diag.Manifest,
	error) {
	defer s.story.End()
	return diag.Gather(ctx, s.documents, o.out, diag.Options{
		Profile: o.profile, Redact: o.redact, Version: a.env.Version, Parallel: a.global.parallel,
		NodeTimeout: o.nodeTimeout, Timeout: a.global.timeout, Cluster: found, EventFiles: o.eventFiles,
		Remedies: a.remediesFor, Reporter: s.reporter,
		Connect: s.connectAndClose,
	})
}

package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "Write, check and convert node files",
		a.configInitCommand(), a.configValidateCommand(), a.configSchemaCommand(), a.configConvertCommand(),
		a.configTrustCommand(), a.configUntrustCommand(), a.configListCommand())
}

func (a *app) configInitCommand() *cobra.Command {
	full := false
	cmd := a.starterCommand("Print or write a commented node file to start from", func() []byte {
		if full {
			return config.FullStarter()
		}
		return config.Starter()
	}, examples(
		"config init --write", "writes swdt.yaml, and trusts it",
		"config init > nodes.yaml", "a file that you name with -c nodes.yaml",
		"config init --full", "one with examples of most fields",
		"config init --from win-1 --write", "one of what runs on that machine",
	))
	cmd.Flags().BoolVar(&full, "full", false, "show examples of most fields; docs/reference/node-file.md has all")
	a.addFrom(cmd)
	return cmd
}

// starterCommand prints a file to start from, or writes it.
func (a *app) starterCommand(short string, text func() []byte, examples string) *cobra.Command {
	write := false
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: short,
		Long: short + `.

With --write, swdt writes it into FILE (swdt.yaml if you name none), which must not
exist, and trusts it: then other commands use swdt.yaml in that folder without --config
(see "config trust").`,
		Example: examples,
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case write:
				return a.writeStarter(append(args, config.HereSource)[0], text())
			case len(args) > 0:
				return usagef("%s: say --write to write that file", args[0])
			}
			return a.printBytes(text())
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "write FILE, and trust it")
	return cmd
}

func (a *app) configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of nodes and clusters, for editors",
		Long: `Prints the JSON schema of the documents in node files: of kind Node and of kind
Cluster. It rejects what swdt rejects, as far as a schema can. An editor with a YAML
language server uses it for a file with this comment:

  # yaml-language-server: $schema=swdt.schema.json`,
		Example: examples("config schema > swdt.schema.json", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.printBytes(config.Schema())
		},
	}
}

func (a *app) configValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE…]",
		Short: "Check nodes and clusters: all problems at once, with file and line",
		Long: `Checks the documents of node files, nodes and clusters: those of the named files,
else those of --config or its defaults. It lists each problem as file:line: field:
problem; remedy. It contacts nothing. The exit code is 2 if there is a problem.

A sourceURL that names a missing file of your machine is a warning: the node
file is valid, and the exit code stays 0. A missing file that the build: of the
component makes is no problem. Downloads are not checked.`,
		Example: examples(
			"config validate", "",
			"config validate nodes/ cluster.yaml", "",
		),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) > 0 {
				a.global.config = files
			}
			a.onlyReads = true
			return a.runConfigValidate()
		},
	}
}

func (a *app) runConfigValidate() error {
	nodes, clusters, err := a.allDocuments()
	var wrong *config.Error
	if errors.As(err, &wrong) && !a.inText() {
		return errors.Join(err, a.print(push.Validation{Problems: wrong.Problems}, nil))
	}
	if err != nil {
		return err
	}
	result := push.Validate(nodes, clusters)
	for _, warning := range result.Warnings {
		fmt.Fprintln(a.streams.Err, "warning: "+warning)
	}
	return a.print(result, func(p *ui.Page) error { return result.WriteText(p) })
}

// allDocuments returns the chosen nodes of the files, and all clusters. The files may have no node.
func (a *app) allDocuments() ([]config.Document, []config.ClusterDocument, error) {
	nodes, clusters, err := a.chosenOfAll()
	return nodes, clusters, a.asTyped(err)
}

func (a *app) chosenOfAll() ([]config.Document, []config.ClusterDocument, error) {
	if err := a.global.validate(); err != nil {
		return nil, nil, err
	}
	a.implyCluster()
	if a.choosesInCluster() {
		nodes, err := a.documents()
		return nodes, nil, err
	}
	if a.choosesByName() {
		nodes, err := a.namedDocuments()
		if err != nil || slices.ContainsFunc(nodes, func(d config.Document) bool { return !d.OfFile() }) {
			return nodes, nil, err
		}
	}
	sources, err := a.sources()
	if err != nil {
		return nil, nil, err
	}
	nodes, clusters, err := config.LoadDocuments(sources, a.streams.In)
	if err != nil {
		return nil, nil, orEnded(err, sources)
	}
	a.loaded = len(nodes)
	if len(nodes) == 0 && len(a.global.nodes) == 0 && a.global.selector == "" {
		return nil, clusters, nil
	}
	nodes, err = config.Select(nodes, a.global.nodes, a.global.selector)
	return a.applyVia(nodes), clusters, err
}

func (a *app) configConvertCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "convert [FILE]",
		Short: "Convert an older node file to today's format",
		Long: `Reads a node file of an older swdt from FILE or stdin and prints it in today's
format. It understands kind Config and kind Node of sig-windows-dev-tools, with
deploys or provisioners, and kind Cluster of its fork, from which it makes a
Cluster and a Node: kind for minikube, else the cluster of the kubeconfig, and the
libvirt domain as the node's VM.

The result does what the older swdt did with the file. A field whose meaning has
changed is left out: enableRDP: false left Remote Desktop as it was. Comments at the
top list such fields, and fields without a counterpart, with their lines and the
reasons.`,
		Example: examples(
			"config convert old.yaml > swdt.yaml", "",
		),
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(_ *cobra.Command, args []string) error {
			file := config.Stdin
			if len(args) == 1 {
				file = args[0]
			}
			converted, err := config.Convert(file, a.streams.In)
			if err != nil {
				return err
			}
			return a.printBytes(converted)
		},
	}
}

func (a *app) printBytes(content []byte) error {
	if _, err := a.streams.Out.Write(content); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

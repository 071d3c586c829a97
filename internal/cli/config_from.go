package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

// fromFlag names the node of which config init writes a file.
const fromFlag = "from"

// addFrom adds --from to a command that prints or writes a node file.
func (a *app) addFrom(cmd *cobra.Command) {
	from, starter := "", cmd.RunE
	cmd.Flags().StringVar(&from, fromFlag, "", "look at this `node`, named as with --node, and write what runs there; the binaries' "+
		"paths of your machine are a proposal")
	must(cmd.RegisterFlagCompletionFunc(fromFlag, a.completeNodes))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if from == "" {
			return starter(cmd, args)
		}
		if cmd.Flags().Changed("full") {
			return usagef("--full and --from exclude each other: --from writes what runs on the node")
		}
		write, err := cmd.Flags().GetBool("write")
		if err != nil {
			return err
		}
		return a.runConfigFrom(cmd.Context(), from, write, args)
	}
}

func (a *app) runConfigFrom(ctx context.Context, from string, write bool, args []string) error {
	file := append(slices.Clone(args), config.HereSource)[0]
	switch {
	case write && exists(file):
		return fileError(file, "exists, and is not replaced", "name another file, or remove it")
	case !write && len(args) > 0:
		return usagef("%s: say --write to write that file", args[0])
	}
	a.global.nodes, a.nodesFrom = []string{from}, fromFlag
	s, err := a.begin()
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (config.Document, error) {
		status, err := push.Status(ctx, n, doc, push.StatusOptions{}, r)
		return withRunning(doc, status), err
	})
	if err := fleet.Failures(results); err != nil {
		return err
	}
	text, err := config.Brief([]config.Document{results[0].Value})
	if err != nil {
		return err
	}
	if write {
		return a.writeStarter(file, text)
	}
	return a.printBytes(text)
}

// withRunning returns the document with a provisioner for each component that runs on the node and that it lacks.
func withRunning(doc config.Document, status push.NodeStatus) config.Document {
	provisioners := slices.Clone(doc.Node.Spec.Kubernetes.Provisioners)
	for _, c := range status.Components {
		if indexOf(provisioners, c.Name) < 0 {
			provisioners = append(provisioners, v1alpha1.Provisioner{Name: c.Name,
				SourceURL: "./" + strings.ToLower(c.Name) + ".exe", Destination: cmp.Or(c.Runs, c.Destination)})
		}
	}
	doc.Node.Spec.Kubernetes.Provisioners = provisioners
	return doc
}

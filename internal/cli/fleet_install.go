package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/rollout/installation"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

func (a *app) fleetInstallCommand() *cobra.Command {
	o, options, anyNode := &clusterOptions{}, installation.Options{}, false
	cmd := canDryRun(&cobra.Command{
		Use: "install [flags]", Short: "Install the controller, and the program on the nodes",
		SuggestFor: []string{"up", "apply", "create", "setup"},
		Long: `Installs a fleet in the cluster, in the namespace ` + manifests.Namespace + `: the kinds NodeRollout and
NodeState, the controller (on Linux), the program on the Windows nodes (a HostProcess
DaemonSet), and the rules that limit both. swdt publishes no images: name those that
you have built, in each run.

The controller runs on the nodes of the control plane, since root of its node can order
anything of all Windows nodes. EKS, GKE and AKS show no such nodes: there
--controller-nodes names others, or --any-linux-node says that all are trusted.

It works by server-side apply as the field manager "swdt", so a second run changes
nothing. --dry-run has the API server try each object without storing it, and shows
each field that would change. -o yaml prints the objects, for GitOps, and contacts
nothing; images of registry.invalid stand for those that are not named.`,
		Example: examples(
			"fleet install --controller-image R/controller:v1 --agent-image R/node:v1", "",
			"fleet install --dry-run", "what would change",
			"fleet install -o yaml > fleet.yaml", "the objects, for GitOps",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if anyNode && options.Settings.ControllerNodes != "" {
				return usagef("--controller-nodes and --any-linux-node: use one of them")
			}
			if anyNode {
				options.Settings.ControllerNodes = manifests.LinuxNodes
			}
			return a.runFleetInstall(cmd.Context(), o, options)
		},
	})
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&options.Settings.ControllerImage, "controller-image", "", "`image` of the controller, for Linux")
	flags.StringVar(&options.Settings.NodeImage, "agent-image", "", "`image` of the program on the Windows nodes")
	flags.StringVar(&options.Settings.APIServer, "api-server", "",
		"`HOST:PORT` at which nodes reach the API server (default: its Service, for which nodes need a working kube-proxy)")
	flags.StringVar(&options.Settings.ControllerNodes, "controller-nodes", "",
		"label `selector` of the Linux nodes on which the controller may run (default those of the control plane)")
	flags.BoolVar(&anyNode, "any-linux-node", false,
		"let the controller run on any Linux node: root there can drain all Windows nodes, and start each rollout")
	flags.BoolVar(&options.Force, "force", false, "take fields even if other managers own them")
	return cmd
}

func (a *app) runFleetInstall(ctx context.Context, o *clusterOptions, options installation.Options) error {
	settings := options.Settings
	err := errors.Join(checkImage("controller-image", settings.ControllerImage),
		checkImage("agent-image", settings.NodeImage))
	if err != nil {
		return err
	}
	if err := settings.Check(); err != nil {
		if errors.As(err, new(*manifests.SelectorError)) {
			return usagef("--controller-nodes %v", err)
		}
		return usagef("--api-server %v", err)
	}
	if a.global.output == result.YAML {
		text, err := manifests.YAML(settings)
		if err != nil {
			return err
		}
		if settings.ControllerImage == "" || settings.NodeImage == "" {
			story := a.newStory()
			story.Node("").Warn("the objects have images of registry.invalid, which do not exist: replace them, or " +
				"name both images with --controller-image and --agent-image")
			story.End()
		}
		return a.printBytes(text)
	}
	options.DryRun = a.global.dryRun
	if !options.DryRun && (settings.ControllerImage == "" || settings.NodeImage == "") {
		return usagef("name both images, with --controller-image and --agent-image: swdt publishes none")
	}
	c, err := o.open()
	if err != nil {
		return err
	}
	return a.changeFleet(ctx, c, func(ctx context.Context, r ui.Reporter) ([]plan.StepResult, error) {
		if err := installation.CheckController(ctx, c, settings); err != nil {
			if none := (*installation.NoNodeError)(nil); errors.As(err, &none) {
				return nil, usagef("%v", err)
			}
			return nil, err
		}
		return installation.Run(ctx, c, options, r)
	})
}

func (a *app) fleetUninstallCommand() *cobra.Command {
	o, options, yes := &clusterOptions{}, installation.RemovalOptions{}, false
	cmd := canDryRun(&cobra.Command{
		Use: "uninstall [flags]", Short: "Remove the fleet, with all rollouts",
		SuggestFor: []string{"remove", "delete", "down"},
		Long: `Removes what "fleet install" has installed: the programs first, then their rules, the
namespace ` + manifests.Namespace + `, and the kinds with all rollouts. Nodes keep their binaries; a node that
changes just then is brought to an end by its guardian, but is not uncordoned. It
asks first, unless --yes or --dry-run is set.`,
		Example: examples("fleet uninstall --dry-run", "", "fleet uninstall --yes", "in a script"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			prompt, answered := a.prompter(a.newStory()), yes || a.global.dryRun
			if err := canConfirm(prompt, answered, "Remove the fleet with all its rollouts?"); err != nil {
				return err
			}
			if options.Wait <= 0 {
				return usagef("--%s %s: use a positive time, such as 10m", waitTimeout, options.Wait)
			}
			c, err := o.open()
			if err != nil {
				return err
			}
			question := "Remove the fleet of " + c.Server() + " with all its rollouts?"
			if err := confirm(cmd.Context(), prompt, answered, question); err != nil {
				return err
			}
			options.DryRun = a.global.dryRun
			return a.changeFleet(cmd.Context(), c, func(ctx context.Context, r ui.Reporter) ([]plan.StepResult, error) {
				return installation.Remove(ctx, c, options, r)
			})
		},
	})
	o.addFlags(cmd)
	cmd.Flags().DurationVar(&options.Wait, waitTimeout, 5*time.Minute, "how long the removal of each object may take")
	addYesFlag(cmd, &yes)
	return cmd
}

// changeFleet installs or removes the fleet, and prints a line for each object.
func (a *app) changeFleet(ctx context.Context, c *cluster.Cluster,
	change func(context.Context, ui.Reporter) ([]plan.StepResult, error)) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	r := story.Node("")
	steps, failure := change(ctx, r)
	ui.Done(r)
	story.End()
	report := installation.NewReport(c, steps, failure)
	err := a.print(report, func(p *ui.Page) error { return report.WriteText(p, a.global.dryRun) })
	return errors.Join(err, refused(explain(ctx, failure)))
}

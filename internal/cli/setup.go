package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
)

type setupOptions struct{ allowReboot bool }

func (a *app) setupCommand() *cobra.Command {
	o := &setupOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "setup [flags]",
		Short: "Configure Windows as spec.setup of the node file says",
		Long: `Configures the node as spec.setup of its node file says: Remote Desktop, SSH
keys, hosts entries, environment and PATH, firewall rules, Windows features, and
Chocolatey with packages. It compares each setting first and changes it only if
it differs, so a second run finds nothing to do. Settings that the file does not
mention stay as they are.

If a change needs a reboot to take effect, swdt says so and ends with exit code
1, unless --allow-reboot lets it reboot the node and go on.`,
		Example: examples(
			"setup", "",
			"setup --dry-run", "what would change",
			"setup --allow-reboot", "reboot if a feature needs it",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSetup(cmd.Context(), o) },
	}))
	cmd.Flags().BoolVar(&o.allowReboot, "allow-reboot", false,
		"reboot the node if a change needs it, wait, and go on")
	return cmd
}

func (a *app) runSetup(ctx context.Context, o *setupOptions) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.warnOfOtherMeanings()
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (plan.Result, error) {
		steps := setup.Steps(n, doc.Node.Spec.Setup, setup.Options{Resolve: doc.Resolve})
		options := plan.Options{Machine: n, DryRun: a.global.dryRun, AllowReboot: o.allowReboot}
		done, err := plan.Run(ctx, steps, options, r)
		return plan.Result{Steps: done}, err
	})
	return a.printSteps(results, "the node file has no spec.setup")
}

// warnOfOtherMeanings names the fields that an older swdt interpreted differently.
func (s *session) warnOfOtherMeanings() {
	for _, document := range s.documents {
		for _, warning := range document.OtherMeanings {
			s.story.Node("").Warn("%s", warning)
		}
	}
}

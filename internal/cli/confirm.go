package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/node/ssh"
)

// Commands that destroy something ask first: reset, down, hcs kill, hns remove, sandbox down --all, cluster
// delete, network remove, fleet uninstall, scale run, vm delete, vm network remove, vm image remove, the
// removal or restoration of a snapshot, vm image bake before it replaces a file, and upgrade check --fix, whose changes
// swdt chooses. A flag that can only mean yes (capture --force) already answers the question. A change that another
// command reverts exactly (a push, a rollback, a setting) needs no question.
//
// The rule for all these commands: without a terminal, a command requires --yes (exit code 2)
// before it looks at anything else. If the answer is no, the command ends with exit code 1.

// yesFlag answers the question before it is asked.
const yesFlag = "yes"

func addYesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, yesFlag, "y", false, "do not ask")
}

// errNotConfirmed ends a command whose question was answered with no.
var errNotConfirmed = errors.New("the answer was no: nothing was changed")

// confirm asks a question unless a flag has answered it, and returns nil for yes.
// prompt is nil if there is no terminal to ask on.
func confirm(ctx context.Context, prompt ssh.Prompter, answered bool, question string) error {
	if answered {
		return nil
	}
	if err := canConfirm(prompt, answered, question); err != nil {
		return err
	}
	yes, err := prompt.Confirm(ctx, question)
	if err == nil && !yes {
		err = errNotConfirmed
	}
	return err
}

// canConfirm returns a usage error if a command must ask first, but has neither a terminal to ask
// on nor --yes as the answer.
func canConfirm(prompt ssh.Prompter, answered bool, question string) error {
	if answered || prompt != nil {
		return nil
	}
	return usagef("there is no terminal to ask on: %s Say --%s if so", question, yesFlag)
}

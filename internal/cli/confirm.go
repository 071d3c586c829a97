package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ssh"
)

// Commands that destroy something ask first: reset, hcs kill and sandbox down
// --all. A flag that can only mean yes (capture --force) is the answer already, and
// what another command takes back exactly (a push, a rollback) needs no question.

// yesFlag answers the question before it is asked.
const yesFlag = "yes"

func addYesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, yesFlag, "y", false, "do not ask")
}

// errNotConfirmed ends a command whose question was answered with no.
var errNotConfirmed = errors.New("the answer was no: nothing was changed")

// confirm asks a question unless it is answered already, and returns nil for yes.
// prompt is nil if there is no terminal to ask on.
func confirm(ctx context.Context, prompt ssh.Prompter, answered bool, question string) error {
	if answered {
		return nil
	}
	if prompt == nil {
		return noTerminalToAsk(question)
	}
	yes, err := prompt.Confirm(ctx, question)
	if err == nil && !yes {
		err = errNotConfirmed
	}
	return err
}

// noTerminalToAsk is the usage error of a command that asks first, run by a script
// that does not answer.
func noTerminalToAsk(question string) error {
	return usagef("there is no terminal to ask on: %s Say --%s if so", question, yesFlag)
}

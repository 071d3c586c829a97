package ssh

import "context"

// Prompter asks the person at the terminal. Implementations are safe for
// concurrent use and ask one question at a time.
type Prompter interface {
	// Confirm asks a question that is answered with yes or no.
	Confirm(ctx context.Context, question string) (bool, error)
	// Secret asks for a password or passphrase, which is not shown.
	Secret(ctx context.Context, question string) (string, error)
}

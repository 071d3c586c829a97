// Package settings edits what Windows keeps as text that other people edit too:
// the hosts file, and the machine's environment variables with PATH among them.
// Its rule is to touch nothing but what was asked for: every other line, comment,
// line ending, order and spelling stays byte for byte, and what is already as
// wanted is not written at all.
package settings

import "fmt"

// InvalidError is a value that Windows would not understand; nothing was changed.
type InvalidError struct{ What string }

func (e *InvalidError) Error() string { return e.What }

func invalidf(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

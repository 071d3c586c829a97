// Package settings edits settings that Windows stores as text and that people
// edit too: the hosts file, and the machine's environment variables including
// PATH. It changes only what was requested: every other line, comment, line
// ending, order and spelling stays byte for byte. If a setting has the wanted
// value already, the package does not write it at all.
package settings

import "fmt"

// InvalidError reports that the package refuses a change, for example because Windows would not
// understand a value, or that the package cannot read the hosts file. The setting that the error
// names was not changed.
type InvalidError struct{ What string }

func (e *InvalidError) Error() string { return e.What }

func invalidf(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

//go:build !swdtpause

package swap

// afterRecord is called when a record is on the disk and what it announces has
// not begun. An agent built with the tag swdtpause stays there for a moment, for
// tests that kill it in a given state.
func afterRecord() {}

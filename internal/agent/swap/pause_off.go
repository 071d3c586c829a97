//go:build !swdtpause

package swap

// afterRecord is called when a record is on the disk and the action that the record announces has
// not begun. This implementation does nothing. In an agent built with the tag swdtpause,
// afterRecord waits briefly, for tests that kill the agent in a given state.
func afterRecord() {}

//go:build !swdtpause

package swap

// afterRecord is called when a record is on the disk and the action that the record announces has
// not begun. This implementation does nothing. In an agent built with the tag swdtpause,
// afterRecord waits in the state that a test names, which kills the agent meanwhile.
func afterRecord() {}

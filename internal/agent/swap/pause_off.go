//go:build !swdtpause

package swap

// afterRecord is called when a record is on the disk and its action has not
// begun. An agent built with the tag swdtpause waits there briefly, for tests
// that kill it in a given state.
func afterRecord() {}

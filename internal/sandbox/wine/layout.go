package wine

import "os/exec"

// fixedLayout returns the words that start Wine without address randomisation; they go in front
// of Wine's own command line. It returns no words if the machine lacks setarch or does not allow
// its use, as in some containers.
//
// Every Windows process has a page at 0x7ffe0000. Debian's wine64 is loaded at 0x7d000000, and
// Linux puts the heap of such a program anywhere in the gigabyte above it. In about one of 6,000
// starts the heap occupies that page, and the process ends without a message: CreateProcess then
// reports an internal error (1359), and the start of a service reports a timeout (1053). Without
// randomisation the heap begins after the program, and ends before that page. Child processes
// inherit the setting.
func fixedLayout() []string {
	setarch, err := exec.LookPath("setarch")
	if err != nil {
		return nil
	}
	words := []string{setarch, "--addr-no-randomize"}
	if err := exec.Command(words[0], words[1], "true").Run(); err != nil {
		return nil
	}
	return words
}

package wine

import "os/exec"

// fixedLayout is what Wine is started through: the words before its own command
// line, none where the machine does not allow it (a container may not).
//
// Every Windows process has a page at 0x7ffe0000. Debian's wine64 stands at
// 0x7d000000, and Linux puts the heap of such a program anywhere in the gigabyte
// above it: of some 6,000 starts one finds that page taken and dies without a
// word, which CreateProcess calls an internal error (1359) and a service's start
// a timeout (1053). Without randomisation the heap begins behind the program, and
// ends before that page. What a process starts inherits it.
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

package wait

import (
	"errors"
	"os/exec"
	"time"
)

// outputLimit is how long Program reads the output of a program that has ended. Only another process that
// keeps the output open lets it expire: what a program has written before its end is read at once.
const outputLimit = 10 * time.Second

// Program runs a command, as cmd.Run does, and succeeds if the program itself does. If another process, which
// the program has left running, keeps the output open, Program stops reading after cmd.WaitDelay, by default
// 10 s, and this is no error.
func Program(cmd *exec.Cmd) error {
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = outputLimit
	}
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // Run returns it only if the program succeeded
		return nil
	}
	return err
}

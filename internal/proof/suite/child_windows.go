package suite

import "os/exec"

func separate(*exec.Cmd) {}

// interrupt kills the process: Windows has no signal for a process without a console. swdt removes the
// namespaces of the run afterwards.
func (c *child) interrupt() { c.kill() }
func (c *child) kill()      { _ = c.cmd.Process.Kill() }

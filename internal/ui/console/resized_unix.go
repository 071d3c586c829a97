//go:build !windows

package console

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// catch begins to receive the signals that watch handles. No signal may end the process between the
// raw mode and the first line of watch.
func catch() chan os.Signal {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGHUP, syscall.SIGQUIT)
	return signals
}

// watch passes on the terminal's sizes until the session ends. It also ends the session at the signals
// that would end the process without putting the terminal back.
func (c *Console) watch(signals chan os.Signal) {
	defer signal.Stop(signals)
	size := c.Size()
	c.sizes <- size // the terminal may have changed since the program's first size was read
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGWINCH {
				c.end(&interrupt.Error{Signal: s.String()})
				return
			}
			size = c.resized(size)
		case <-c.ctx.Done():
			return
		}
	}
}

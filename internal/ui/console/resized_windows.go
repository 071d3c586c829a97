package console

import (
	"os"
	"time"
)

// sizePoll is how often the size of the console is read: a program that reads its keys as bytes gets
// no notification.
const sizePoll = 250 * time.Millisecond

// catch returns no channel: a console of Windows sends no such signals.
func catch() chan os.Signal { return nil }

// watch passes on the console's sizes until the session ends.
func (c *Console) watch(chan os.Signal) {
	tick := time.NewTicker(sizePoll)
	defer tick.Stop()
	size := c.Size()
	for {
		select {
		case <-tick.C:
			size = c.resized(size)
		case <-c.ctx.Done():
			return
		}
	}
}

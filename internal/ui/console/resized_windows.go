package console

import "time"

// sizePoll is how often the size of the console is read: a program that reads its keys as bytes gets
// no notification.
const sizePoll = 250 * time.Millisecond

// watch passes on the console's sizes until the session ends.
func (c *Console) watch() {
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

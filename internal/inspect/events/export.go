package events

import (
	"context"
	"fmt"
	"io"
)

// Export writes the channel's last events, at most the given number, into a new file on the node in
// Windows' own format (.evtx), which Event Viewer opens. It writes fewer events if the numbers of
// the channel's records have gaps.
func (c Channel) Export(ctx context.Context, last int, path string) error {
	newest, err := c.newest(ctx)
	if err != nil {
		return err
	}
	args := []string{"epl", c.chosen.channel, path, "/ow:true"}
	if newest > uint64(last) {
		args = append(args, "/q:"+Query{}.xpaths(nil, span{after: newest - uint64(last)})[0])
	}
	if err := run(ctx, c.reader.programs, args, io.Discard); err != nil {
		return fmt.Errorf("export event channel %s: %w", c.chosen.channel, err)
	}
	return nil
}

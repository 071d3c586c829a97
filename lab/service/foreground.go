package main

import (
	"context"
	"os"
	"os/signal"
)

// foreground runs until Ctrl-C and logs to stderr, or to --log-file.
func (c *component) foreground() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c.log = os.Stderr
	if c.options.logFile != "" {
		if err := c.openLog(); err != nil {
			return err
		}
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	if c.behaviour.hangOnStop {
		select {}
	}
	return nil
}

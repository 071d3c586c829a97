//go:build !windows

package main

import "errors"

func (c config) makeEndpoint() error {
	if c.HNSNetwork == "" {
		return nil
	}
	return errors.New("there is no Host Network Service on this system")
}

func (c config) removeEndpoint() error { return c.makeEndpoint() }

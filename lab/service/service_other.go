//go:build !windows

package main

func (c *component) service() error { return errNotService }

//go:build !windows

package main

import "errors"

func asService() (bool, error) { return false, nil }

func (c *component) service() error { return errors.New("services run on Windows only") }

//go:build !windows

package main

import "errors"

func run() error { return errors.New("a service runs on Windows only") }

//go:build !windows

package main

import (
	"os"
	"path/filepath"
)

func defaultLog() string { return filepath.Join(os.TempDir(), name+".log") }

func (c *component) service() error { return errNotService }

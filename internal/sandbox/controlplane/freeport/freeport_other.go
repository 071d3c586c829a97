//go:build !linux

package freeport

import "errors"

// Reserved are TCP ports of 127.0.0.1, of which only Linux reserves any.
type Reserved struct{ Numbers []int }

// Reserve fails: it needs Linux.
func Reserve(int) (*Reserved, error) { return nil, errors.ErrUnsupported }

// Release does nothing.
func (r *Reserved) Release() {}

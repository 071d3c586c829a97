//go:build !linux

package controlplane

// ports are the TCP ports of a control plane, which runs on Linux alone.
type ports struct{ apiServer, etcd int }

func reservePorts() (*ports, error) { return nil, ErrNotHere }
func (p *ports) release()           {}

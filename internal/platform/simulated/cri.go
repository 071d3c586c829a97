package simulated

import (
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
)

// serveCRI serves the Container Runtime Interface on containerd's pipe.
func (c component) serveCRI() (func(), error) {
	settings, err := c.loadContainerdConfig()
	if err != nil {
		return nil, err
	}
	listener, err := c.p.ListenPipe(settings.pipe)
	if err != nil {
		return nil, err
	}
	m := c.p.p.m
	options := criserver.Options{
		Version: c.version, Unhealthy: c.fault == Unhealthy,
		NetworkReady: func() bool { return m.networkReady(settings.confDir) },
	}
	if m.options.Preset.hasNode() {
		options.Workload = m.workload(c.p.p)
	}
	options.Workload.Images = append(options.Workload.Images, m.options.Images...)
	options.Ended, options.Removed = m.systemEnded, &m.removed
	options.Pulled, options.Offline = &m.pulled, !m.options.Internet
	server := criserver.NewServer(options)
	m.spawn(func() { _ = server.Serve(listener) })
	m.spawn(func() {
		<-c.p.Context().Done()
		server.Stop()
	})
	return func() {
		_ = listener.Close()
		server.Stop()
	}, nil
}

// Removed reports whether containerd was asked to remove the pod or the image with this id.
func (m *Machine) Removed(id string) bool { return m.removed.Has(id) }

package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// layout has the folders of a control plane, and returns the paths of its files.
type layout struct{ binaries, state string }

func makeLayout(o Options) (layout, error) {
	state, err := filepath.Abs(o.State)
	if err != nil {
		return layout{}, fmt.Errorf("control plane's state folder: %w", err)
	}
	entries, err := os.ReadDir(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return layout{}, fmt.Errorf("control plane's state folder: %w", err)
	}
	if len(entries) > 0 {
		return layout{}, fmt.Errorf("control plane's state folder %s is not empty: remove it or give another one",
			state)
	}
	l := layout{binaries: o.Binaries, state: state}
	for _, folder := range []string{state, l.logs()} {
		// The folder holds the cluster's keys, so only its owner may read it.
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return layout{}, fmt.Errorf("control plane's state folder: %w", err)
		}
	}
	return l, nil
}

func (l layout) binary(name string) string      { return filepath.Join(l.binaries, name) }
func (l layout) file(name string) string        { return filepath.Join(l.state, filepath.FromSlash(name)) }
func (l layout) logs() string                   { return filepath.Join(l.state, "log") }
func (l layout) log(name string) string         { return filepath.Join(l.logs(), name+".log") }
func (l layout) auditPolicy() string            { return l.file("audit.json") }
func (l layout) auditLog() string               { return filepath.Join(l.logs(), "audit.json") }
func (l layout) admission() string              { return l.file("admission.json") }
func (l layout) localConfig() string            { return l.file("kubeadm.yaml") }
func (l layout) clusterConfig() string          { return l.file("kubeadm-cluster.yaml") }
func (l layout) pki() string                    { return filepath.Join(l.state, "pki") }
func (l layout) certificate(name string) string { return filepath.Join(l.pki(), name+".crt") }
func (l layout) key(name string) string         { return filepath.Join(l.pki(), name+".key") }

// kubeconfig returns the path of a kubeconfig that `kubeadm init phase kubeconfig` writes.
func (l layout) kubeconfig(name string) string { return filepath.Join(l.state, name+".conf") }

func (l layout) endpoint(p *ports) string { return fmt.Sprintf("127.0.0.1:%d", p.apiServer) }
func (l layout) server(p *ports) string   { return "https://" + l.endpoint(p) }

package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// kubeletRecord is kubelet's configuration as swdt and kubeadm have made it. A difference on the node was made there
// by hand. An upgrade replaces the record in its transaction, so that it always belongs to the configuration.
type kubeletRecord struct {
	Config      string `json:"config"`      // config.yaml as kubeadm wrote it; "": unknown
	CommandLine string `json:"commandLine"` // as swdt registered it; "": unknown
}

// loadKubeletRecord returns the record and its text; both are empty if there is none, as on a node that an older swdt
// has joined.
func loadKubeletRecord(ctx context.Context, n *node.Node) (r kubeletRecord, text []byte, err error) {
	text, err = smallfile.Read(ctx, n, layout.KubeletRecord)
	if errors.Is(err, fault.ErrNotExist) || err == nil && len(text) == 0 {
		return r, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, nil, fmt.Errorf("read how kubelet was configured: %w; remove %s if it is damaged", err,
			layout.KubeletRecord)
	}
	return r, text, nil
}

func (r kubeletRecord) text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// changeKubeletRecord writes the record if change changes it.
func changeKubeletRecord(ctx context.Context, n *node.Node, change func(*kubeletRecord)) error {
	r, _, err := loadKubeletRecord(ctx, n)
	if err != nil {
		return err
	}
	before := r
	change(&r)
	if r == before {
		return nil
	}
	text, err := r.text()
	if err != nil {
		return err
	}
	return smallfile.Replace(ctx, n, layout.KubeletRecord, text, "")
}

// noteConfiguration records the configuration that kubeadm join has written.
func (s *kubeadmJoin) noteConfiguration(ctx context.Context, n *node.Node) error {
	content, err := smallfile.Read(ctx, n, kubeletYAML)
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return changeKubeletRecord(ctx, n, func(r *kubeletRecord) { r.Config = string(content) })
}

// registerKubelet registers the service kubelet, and records its command line.
func (j *joining) registerKubelet(ctx context.Context, wanted *agentv1.ServiceConfig) error {
	if err := j.register(ctx, j.node, wanted); err != nil {
		return err
	}
	return changeKubeletRecord(ctx, j.node, func(r *kubeletRecord) { r.CommandLine = wanted.GetCommandLine() })
}

func removeKubeletRecord(ctx context.Context, n *node.Node) error {
	for _, path := range []string{layout.KubeletRecord, layout.Previous(layout.KubeletRecord)} {
		if err := smallfile.Remove(ctx, n, path); err != nil {
			return err
		}
	}
	return nil
}

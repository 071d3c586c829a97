package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// kubeletConfig is the drop-in that kubelet merges over the cluster's configuration. kubeadm, not
// swdt, writes the cluster's configuration to the machine.
type kubeletConfig struct{ *joining }

func (s *kubeletConfig) Name() string { return stepKubeletConfig }

// wanted returns the drop-in; nil if there is none.
func (s *kubeletConfig) wanted() ([]byte, error) {
	if len(s.spec.Kubelet.ConfigPatch) == 0 {
		return nil, nil
	}
	content, err := kubeletconfig.Marshal(s.spec.Kubelet.ConfigPatch)
	if err != nil {
		return nil, fmt.Errorf("write spec.kubernetes.kubelet.configPatch as YAML: %w", err)
	}
	return append([]byte("# Written by swdt join from kubelet.configPatch of the node file.\n"), content...), nil
}

func (s *kubeletConfig) Plan(ctx context.Context) (plan.Change, error) {
	wanted, err := s.wanted()
	if err != nil {
		return plan.Change{}, err
	}
	is, err := smallfile.Read(ctx, s.node, kubeletargs.DropIn)
	missing := errors.Is(err, fault.ErrNotExist)
	if err != nil && !missing {
		return plan.Change{}, err
	}
	switch {
	case missing && wanted == nil || !missing && wanted != nil && bytes.Equal(is, wanted):
		return plan.Change{}, nil
	case wanted == nil:
		r, err := load(ctx, s.node) // a drop-in that swdt did not write stays
		if err != nil || r.file(kubeletargs.DropIn) == nil {
			return plan.Change{}, err
		}
		return plan.Change{Needed: true, Summary: "remove " + kubeletargs.DropIn}, nil
	case missing:
		return plan.Change{Needed: true, Summary: "write " + kubeletargs.DropIn}, nil
	}
	return plan.Change{Needed: true, Summary: "change " + kubeletargs.DropIn}, nil
}

func (s *kubeletConfig) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	wanted, err := s.wanted()
	if err != nil {
		return plan.Outcome{}, err
	}
	if wanted != nil {
		return plan.Outcome{}, putFile(ctx, s.node, stepKubeletConfig, kubeletargs.DropIn, wanted, kubeletName)
	}
	err = update(ctx, s.node, func(r *record) {
		if r.service(kubeletName) != nil {
			r.addRestart(kubeletName)
		}
	})
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, takeFilesBack(ctx, s.node, stepKubeletConfig)
}

func (s *kubeletConfig) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	return filesChange(r.filesOf(stepKubeletConfig)), err
}

func (s *kubeletConfig) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, takeFilesBack(ctx, s.node, stepKubeletConfig)
}

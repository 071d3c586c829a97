package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/command"
	"github.com/swdt-dev/swdt/internal/containerdconfig"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// containerdConfig is containerd's config.toml: what this containerd generates by
// itself, with the node file's wishes.
type containerdConfig struct{ *joining }

func (s *containerdConfig) Name() string      { return stepContainerdConfig }
func (s *containerdConfig) Follows() []string { return []string{stepContainerdFiles} }
func (s *containerdConfig) FollowUp() string {
	return "generate " + containerdToml + " where the new containerd's is another"
}

func (s *containerdConfig) Plan(ctx context.Context, n *node.Node) (plan.Change, error) {
	installed, err := smallfile.Exists(ctx, n, containerdExe)
	if err != nil {
		return plan.Change{}, err
	}
	is, err := smallfile.Read(ctx, n, containerdToml)
	missing, traced := errors.Is(err, host.ErrNotExist), false
	if err != nil && !missing {
		return plan.Change{}, err
	}
	if !missing {
		if is, missing, traced, err = untracedFile(ctx, n, containerdToml, is); err != nil {
			return plan.Change{}, err
		}
	}
	if !installed {
		return s.generate(ctx, n, missing)
	}
	wanted, err := s.wanted(ctx, n, ui.Discard{})
	switch {
	case err != nil:
		return plan.Change{}, err
	case !missing && containerdconfig.Equal(is, wanted):
		return plan.Change{}, nil
	case traced:
		return plan.Change{}, refuse(ctx, n, containerdName, containerdToml)
	case missing:
		return s.generate(ctx, n, missing)
	}
	r, err := load(ctx, n)
	if err != nil {
		return plan.Change{}, err
	}
	if r.file(containerdToml) == nil {
		return s.generate(ctx, n, missing)
	}
	return plan.Change{Needed: true, Summary: "change " + containerdToml}, nil
}

func (s *containerdConfig) generate(ctx context.Context, n *node.Node, missing bool) (plan.Change, error) {
	summary := "generate " + containerdToml
	r, err := load(ctx, n)
	if err == nil && !missing && r.file(containerdToml) == nil {
		summary += ", and keep the present one as " + before(containerdToml)
	}
	return plan.Change{Needed: true, Summary: summary}, err
}

func (s *containerdConfig) Apply(ctx context.Context, n *node.Node, r ui.Reporter) (plan.Outcome, error) {
	wanted, err := s.wanted(ctx, n, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, putFile(ctx, n, stepContainerdConfig, containerdToml, wanted, containerdName)
}

// wanted asks the containerd on the node for its configuration and puts the
// wishes in.
func (s *containerdConfig) wanted(ctx context.Context, n *node.Node, r ui.Reporter) ([]byte, error) {
	var out, errOut bytes.Buffer
	code, err := command.Run(ctx, n.Processes,
		&agentv1.RunCommand{Path: containerdExe, Args: []string{"config", "default"}, Folder: v1alpha1.ContainerdFolder},
		command.Streams{Stdout: &out, Stderr: &errOut})
	if err != nil {
		return nil, fmt.Errorf("have containerd generate its configuration: %w", err)
	}
	if code != 0 {
		return nil, fmt.Errorf("have containerd generate its configuration: %s config default ended with exit code %d: %s",
			containerdExe, code, strings.TrimSpace(errOut.String()))
	}
	c := s.spec.Containerd
	merged, info, err := containerdconfig.Merge(out.Bytes(), containerdconfig.Wishes{
		PauseImage: c.PauseImage,
		CNIBinDir:  c.CNI.BinDirectory,
		CNIConfDir: c.CNI.ConfigDirectory,
		Pipe:       v1alpha1.ContainerdPipe,
		User:       []byte(c.Config),
	})
	for _, warning := range info.Warnings {
		r.Warn("%s", warning)
	}
	return merged, err
}

func (s *containerdConfig) PlanUndo(ctx context.Context, n *node.Node) (plan.Change, error) {
	r, err := load(ctx, n)
	return filesChange(r.filesOf(stepContainerdConfig)), err
}

func (s *containerdConfig) Undo(ctx context.Context, n *node.Node, _ ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, takeFilesBack(ctx, n, stepContainerdConfig)
}

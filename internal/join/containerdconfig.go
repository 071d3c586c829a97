package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// containerdConfig is containerd's config.toml: the configuration that this containerd
// generates, with the settings of the node file.
type containerdConfig struct{ *joining }

func (s *containerdConfig) Name() string      { return stepContainerdConfig }
func (s *containerdConfig) Follows() []string { return []string{stepContainerdFiles} }
func (s *containerdConfig) FollowUp() string {
	if s.exchanges {
		return ""
	}
	return "generate " + containerdToml + " if the new containerd generates a different one"
}

func (s *containerdConfig) Plan(ctx context.Context) (plan.Change, error) {
	if s.exchanges { // config.toml is exchanged along with containerd, and compared again after that
		return plan.Change{}, nil
	}
	installed, err := smallfile.Exists(ctx, s.node, containerdExe)
	if err != nil {
		return plan.Change{}, err
	}
	is, err := smallfile.Read(ctx, s.node, containerdToml)
	missing, traced := errors.Is(err, fault.ErrNotExist), false
	if err != nil && !missing {
		return plan.Change{}, err
	}
	if !missing {
		if is, missing, traced, err = untracedFile(ctx, s.node, containerdToml, is); err != nil {
			return plan.Change{}, err
		}
	}
	if !installed {
		return s.generate(ctx, s.node, missing)
	}
	wanted, err := s.generatedBy(ctx, s.node, containerdExe, ui.Discard{})
	switch {
	case err != nil:
		return plan.Change{}, err
	case !missing && keeps(is, wanted):
		return plan.Change{}, nil
	case traced:
		return plan.Change{}, refuse(ctx, s.node, containerdName, containerdToml)
	case missing:
		return s.generate(ctx, s.node, missing)
	}
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	change := plan.Change{Needed: true, Summary: "change " + containerdToml}
	if r.file(containerdToml) == nil {
		change, err = s.generate(ctx, s.node, missing)
	}
	if unread, ok := errors.AsType[*windowstext.Error](refusal(is, wanted)); ok {
		change.Summary += fmt.Sprintf(" (line %d: %s)", unread.Line, unread.Problem())
	}
	return change, err
}

// keeps reports whether a configuration has the wanted values, and the containerd that has generated these reads it.
func keeps(is, wanted []byte) bool {
	return containerdconfig.Equal(is, wanted) && refusal(is, wanted) == nil
}

func refusal(is, wanted []byte) error {
	return containerdconfig.Refuse(is, containerdconfig.MajorOf(wanted))
}

func (s *containerdConfig) generate(ctx context.Context, n *node.Node, missing bool) (plan.Change, error) {
	summary := "generate " + containerdToml
	r, err := load(ctx, n)
	if err == nil && !missing && r.file(containerdToml) == nil {
		summary += ", and keep the present one as " + before(containerdToml)
	}
	return plan.Change{Needed: true, Summary: summary}, err
}

func (s *containerdConfig) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	wanted, err := s.generatedBy(ctx, s.node, containerdExe, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, putFile(ctx, s.node, stepContainerdConfig, containerdToml, wanted, containerdName)
}

// generatedBy asks a containerd on the node for its default configuration, and adds the
// node file's settings.
func (s *containerdConfig) generatedBy(ctx context.Context, n *node.Node, program string, r ui.Reporter) ([]byte,
	error) {
	var out, errOut bytes.Buffer
	code, err := command.Run(ctx, n.Processes,
		&agentv1.RunCommand{Path: program, Args: []string{"config", "default"}, Folder: v1alpha1.ContainerdFolder},
		command.Streams{Stdout: &out, Stderr: &errOut})
	if err != nil {
		return nil, fmt.Errorf("have containerd generate its configuration: %w", err)
	}
	if code != 0 {
		return nil, fmt.Errorf("have containerd generate its configuration: %s config default ended with exit code "+
			"%d: %s",
			program, code, strings.TrimSpace(errOut.String()))
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

func (s *containerdConfig) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	return filesChange(r.filesOf(stepContainerdConfig)), err
}

func (s *containerdConfig) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if r.file(containerdToml) != nil {
		if err := removeExchanged(ctx, s.node); err != nil {
			return plan.Outcome{}, err
		}
	}
	return plan.Outcome{}, takeFilesBack(ctx, s.node, stepContainerdConfig)
}

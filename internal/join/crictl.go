package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// crictlConfig configures containerd's address for the crictl that the step "containerd files" installs. A
// configuration that swdt did not write stays; one that it wrote without a crictl, as earlier versions did, goes.
type crictlConfig struct{ *joining }

const crictlYAML = "runtime-endpoint: npipe:////./pipe/containerd-containerd\n" +
	"image-endpoint: npipe:////./pipe/containerd-containerd\n"

func (s *crictlConfig) Name() string { return stepCrictl }

const crictlExe = containerdBin + `\crictl.exe`

// installed reports whether the join installs crictl, or has installed it.
func (s *crictlConfig) installed(r record) bool {
	return s.spec.Containerd.CrictlVersion != "" || r.file(crictlExe) != nil
}

func (s *crictlConfig) Plan(ctx context.Context) (plan.Change, error) {
	r := s.compared
	if r == nil {
		read, err := load(ctx, s.node)
		if err != nil {
			return plan.Change{}, err
		}
		r = &read
	}
	if !s.installed(*r) {
		return filesChange(r.filesOf(stepCrictl)), nil
	}
	path, err := s.path(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	_, err = smallfile.Read(ctx, s.node, path)
	if errors.Is(err, fault.ErrNotExist) {
		return plan.Change{Needed: true, Summary: "write " + path}, nil
	}
	return plan.Change{}, err
}

func (s *crictlConfig) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if !s.installed(r) {
		return plan.Outcome{}, takeFilesBack(ctx, s.node, stepCrictl)
	}
	path, err := s.path(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	folder := folderOf(path)
	there, err := smallfile.Exists(ctx, s.node, folder)
	if err != nil {
		return plan.Outcome{}, err
	}
	if !there {
		err = update(ctx, s.node, func(r *record) {
			if !r.folder(folder) {
				r.Folders = append(r.Folders, folderRecord{Path: folder})
			}
		})
	}
	if err == nil {
		err = putFile(ctx, s.node, stepCrictl, path, []byte(crictlYAML))
	}
	return plan.Outcome{}, err
}

// path returns the path of crictl.yaml in the profile of the user as whom swdt logs in.
func (s *crictlConfig) path(ctx context.Context, n *node.Node) (string, error) {
	var out bytes.Buffer
	cmd := &agentv1.RunCommand{Path: `C:\Windows\System32\cmd.exe`, Args: []string{"/c", "echo", "%USERPROFILE%"}}
	code, err := command.Run(ctx, n.Processes, cmd, command.Streams{Stdout: &out})
	if err != nil {
		return "", fmt.Errorf("look for the user's profile: %w", err)
	}
	profile := strings.TrimSpace(out.String())
	if code != 0 || len(profile) < len(`C:\x`) || profile[1] != ':' {
		return "", fmt.Errorf("look for the user's profile: %%USERPROFILE%% is %q, exit code %d", profile, code)
	}
	return profile + `\.crictl\crictl.yaml`, nil
}

func (s *crictlConfig) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	return filesChange(r.filesOf(stepCrictl)), err
}

func (s *crictlConfig) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, takeFilesBack(ctx, s.node, stepCrictl)
}

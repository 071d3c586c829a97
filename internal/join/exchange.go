package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// newConfiguration returns the config.toml for a new containerd that is staged on the node: the
// configuration that this containerd generates, with the node file's settings. The file is
// exchanged along with containerd, so that one restart applies the new program and the new file.
// Both are rolled back if containerd does not become healthy.
//
// It returns no file if containerd is not replaced, if there is no config.toml yet, or if
// the present config.toml is equivalent.
func (s *binaries) newConfiguration(ctx context.Context, n *node.Node, r ui.Reporter,
	staged map[string]string) ([]push.Companion, error) {
	program, replaced := staged[containerdName]
	if !replaced {
		return nil, nil
	}
	present, err := smallfile.Read(ctx, n, containerdToml)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	untraced, missing, traced, err := untracedFile(ctx, n, containerdToml, present)
	if err != nil {
		return nil, err
	}
	generator := containerdConfig{s.joining}
	wanted, err := generator.generatedBy(ctx, n, program, r)
	switch {
	case err != nil:
		return nil, err
	case !missing && keeps(untraced, wanted):
		return nil, nil
	case traced:
		return nil, refuse(ctx, n, containerdName, containerdToml)
	}
	if err := claimFile(ctx, n, stepContainerdConfig, containerdToml); err != nil {
		return nil, err
	}
	s.exchanged = true
	return []push.Companion{{Destination: containerdToml, Before: present, After: wanted}}, nil
}

// exchangesConfiguration reports whether the push replaces containerd and a config.toml
// exists. The push may then exchange config.toml too.
func exchangesConfiguration(ctx context.Context, n *node.Node, found push.NodeResult) (bool, error) {
	if !replacesContainerd(found) {
		return false, nil
	}
	return smallfile.Exists(ctx, n, containerdToml)
}

// replacesContainerd reports whether a push has replaced containerd itself or, in a dry run, would
// replace it.
func replacesContainerd(found push.NodeResult) bool {
	return slices.ContainsFunc(found.Components, func(c *push.ComponentResult) bool {
		return c.Name == containerdName && c.Action == push.ActionReplaced
	})
}

// removeExchanged removes the files that transactions leave beside config.toml: the previous
// config.toml, and a new one that an interrupted run has staged.
func removeExchanged(ctx context.Context, n *node.Node) error {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: folderOf(containerdToml)})
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into %s: %w", folderOf(containerdToml), err)
	}
	for _, entry := range list.GetEntries() {
		path := entry.GetPath()
		if !strings.EqualFold(path, layout.Previous(containerdToml)) && !layout.IsLeftover(containerdToml, path) {
			continue
		}
		if err := smallfile.Remove(ctx, n, path); err != nil {
			return err
		}
	}
	return nil
}

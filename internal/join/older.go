package join

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/smallfile"
)

// readByAll is a configuration that every containerd reads: with it one that is
// older than that which generated config.toml gets well, and then generates its
// own.
const readByAll = "# Written by swdt join while containerd is replaced by an older one.\nversion = 2\n"

// stepBack replaces containerd by an older one: push is the replacing.
func (s *binaries) stepBack(ctx context.Context, n *node.Node, push func() error) error {
	present, err := smallfile.Read(ctx, n, containerdToml)
	if errors.Is(err, host.ErrNotExist) {
		return push()
	}
	if err != nil {
		return err
	}
	if err := putFile(ctx, n, stepContainerdConfig, containerdToml, []byte(readByAll), containerdName); err != nil {
		return err
	}
	err = push()
	if err != nil && ctx.Err() == nil && !lost(err) { // else the next run generates it
		err = errors.Join(err, putFile(ctx, n, stepContainerdConfig, containerdToml, present, containerdName))
	}
	return err
}

// older is whether containerd is going to be of an older minor version, as far
// as the versions are known.
func older(found deploy.NodeResult) bool {
	for _, c := range found.Components {
		if c.Name != containerdName || c.Action != deploy.ActionReplaced {
			continue
		}
		var is, wanted [2]int
		if !minorOf(c.Version.Before, &is) || !minorOf(c.Version.Wanted, &wanted) {
			return false
		}
		return wanted[0] < is[0] || wanted[0] == is[0] && wanted[1] < is[1]
	}
	return false
}

func minorOf(version string, numbers *[2]int) bool {
	count, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &numbers[0], &numbers[1])
	return err == nil && count == 2
}

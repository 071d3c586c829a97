package logs

import (
	"context"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/node"
)

// List returns every existing log of the known sources, with its rotated parts, and of all pods. It also returns the
// logs that a service is configured to write, even if they do not exist yet.
func List(ctx context.Context, n *node.Node) ([]Found, error) {
	f := &finder{node: n, rotated: true}
	var all []Found
	for _, source := range Sources() {
		found, err := f.known(ctx, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	pods, err := f.pod(ctx, "*/*")
	if err != nil {
		return nil, err
	}
	return unique(append(all, pods...)), nil
}

// existing returns the files that exist.
func existing(all []Found) []Found {
	return slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return !f.Exists })
}

func paths(all []Found) string {
	var list []string
	for _, f := range all {
		list = append(list, f.Path)
	}
	return strings.Join(list, ", ")
}

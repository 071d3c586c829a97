package push

import (
	"context"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// checkVersionInPlace checks the version of a binary that the push does not replace.
func (w *work) checkVersionInPlace(d *difference) error {
	if d.change.swaps() {
		return nil
	}
	d.result.Version.After = d.state.GetVersion()
	if d.change == changeSkipped {
		return nil // the user wants that file kept, whatever its version is
	}
	return w.checkVersion(d.component)
}

// checkStagedVersions asks the new binaries for their version before anything is
// stopped, if a wrong version is an error.
func (w *work) checkStagedVersions(ctx context.Context, files *staging) error {
	if !w.options.Strict {
		return nil
	}
	var asked []*staged
	request := &agentv1.InspectRequest{}
	for _, c := range files.components {
		if c.path == "" || c.spec.Version == "" {
			continue
		}
		asked = append(asked, c)
		request.Components = append(request.Components, &agentv1.InspectComponent{
			Name: c.spec.Name, Destination: c.path, AskVersion: c.reportsVersion(),
		})
	}
	if len(asked) == 0 {
		return nil
	}
	reply, err := w.node.Swap.Inspect(ctx, request)
	if err != nil {
		return fmt.Errorf("ask the new binaries for their version: %w", err)
	}
	for i, c := range asked {
		c.result.Version.After = reply.GetComponents()[i].GetVersion()
		if err := c.fail(w.checkVersion(c.component)); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion compares the version after the push with the wanted version. If they differ, it
// returns a *VersionError with Strict, and otherwise only warns.
func (w *work) checkVersion(c *component) error {
	wanted, got := c.spec.Version, c.result.Version.After
	if wanted == "" || sameVersion(wanted, got) {
		return nil
	}
	err := &VersionError{Wanted: wanted, Got: got}
	if w.options.Strict {
		return err
	}
	w.reporter.Warn("%s: %v", c.spec.Name, err)
	c.addMessage(err.Error())
	return nil
}

// sameVersion reports whether two versions are equal, apart from a leading v. The version
// that a binary reports may have build metadata (+…) that the node file omits.
func sameVersion(wanted, got string) bool {
	wanted, got = strings.TrimPrefix(wanted, "v"), strings.TrimPrefix(got, "v")
	if wanted == got {
		return true
	}
	bare, _, _ := strings.Cut(got, "+")
	return wanted == bare
}

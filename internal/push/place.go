package push

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// UsualDestination returns the path at which swdt places the program of a component: that of a join for containerd, and
// for others NAME.exe in the folder of Kubernetes.
func UsualDestination(name string) string {
	if strings.EqualFold(name, "containerd") {
		return v1alpha1.ContainerdFolder + `\bin\containerd.exe`
	}
	return v1alpha1.KubernetesFolder + `\` + strings.ToLower(name) + ".exe"
}

// Place returns a copy of the document in which the destination of each named component is the file that the component's
// service runs on the node. If another service runs the file at the usual destination, that service becomes the
// component's. A *ProgramError means that no service leads to a file, or that its program is unknown. Place changes
// nothing on the node.
func Place(ctx context.Context, n *node.Node, doc config.Document, names []string, r ui.Reporter) (config.Document, error) {
	if len(names) == 0 {
		return doc, nil
	}
	w := newWork(n, doc, Options{Holder: "-"}, r)
	if err := w.choose(names); err != nil {
		return doc, err
	}
	now, err := w.inspect(ctx)
	if err != nil {
		return doc, err
	}
	services := w.services(now.components)
	provisioners := slices.Clone(doc.Node.Spec.Kubernetes.Provisioners)
	for _, c := range now.components {
		i := slices.IndexFunc(provisioners, func(p v1alpha1.Provisioner) bool { return p.Name == c.spec.Name })
		if provisioners[i], err = c.placed(services); err != nil {
			return doc, fmt.Errorf("%s: %w", c.spec.Name, err)
		}
	}
	doc.Node.Spec.Kubernetes.Provisioners = provisioners
	return doc, nil
}

// placed returns the component's provisioner with the destination that its service runs.
func (c seen) placed(services []string) (v1alpha1.Provisioner, error) {
	p := c.spec
	switch by := c.state.GetRunBy(); {
	case c.state.GetService() == nil && len(by) == 1:
		p.Service = by[0]
		return p, nil
	case c.state.GetService() == nil && len(by) > 1:
		return p, programErrorf("services %s run %s: name the one that you mean, as in %s=FILE", strings.Join(by, " and "),
			p.Destination, by[0])
	case c.state.GetService() == nil && p.SourceURL == "": // no file is to be placed
		hint := ""
		if meant := c.similar(services); meant != "" {
			hint = fmt.Sprintf("did you mean %s? ", meant)
		}
		return p, programErrorf("there is no service %s on the node; %s%s lists them", p.RunBy(), hint,
			remedy.Command("services"))
	case c.state.GetService() == nil:
		hint := ""
		if meant := c.similar(services); meant != "" {
			hint = fmt.Sprintf("did you mean %s=FILE? ", meant)
		}
		return p, programErrorf("there is no service %s on the node, so its file has no known place; %sSERVICE=FILE names a "+
			"service, and `swdt cp FILE node:PATH` copies a file without one", p.RunBy(), hint)
	case c.misplaced() != "":
		p.Destination = c.misplaced()
	case c.state.GetStarts() == nil && c.state.GetRunning() == nil:
		return p, programErrorf("swdt does not know which file service %s runs: %s; set destination in a node file", p.RunBy(),
			c.state.GetProgram().GetUnknown())
	}
	return p, nil
}

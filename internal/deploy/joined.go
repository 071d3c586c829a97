package deploy

import (
	"context"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// addJoined adds what `swdt join` installs and no provisioner has: containerd and
// kubelet, in the versions that the node file has for a join, if any.
func (w *work) addJoined() {
	kubernetes := w.doc.Node.Spec.Kubernetes
	for _, spec := range []v1alpha1.Provisioner{
		{Name: "containerd", Version: kubernetes.Containerd.Version, Destination: v1alpha1.ContainerdFolder + `\bin\containerd.exe`},
		{Name: "kubelet", Version: kubernetes.Version, Destination: v1alpha1.KubernetesFolder + `\kubelet.exe`},
	} {
		if slices.ContainsFunc(w.components, func(c *component) bool { return strings.EqualFold(c.spec.Name, spec.Name) }) {
			continue
		}
		c := newComponent(spec)
		c.joined = true
		w.components = append(w.components, c)
	}
}

// inspectWithJoined inspects the components and drops those that are neither in
// the node file nor on the node. A service that runs its program from another
// folder is inspected there.
func (w *work) inspectWithJoined(ctx context.Context) (*agentv1.InspectReply, error) {
	reply, err := w.inspect(ctx)
	if err != nil {
		return nil, err
	}
	elsewhere := false
	for _, c := range w.components {
		if !c.joined || !c.state.GetServiceExists() {
			continue
		}
		if runs := sameNameElsewhere(c.state.GetServiceConfig().GetCommandLine(), c.spec.Destination); runs != "" {
			c.spec.Destination, elsewhere = runs, true
		}
	}
	if elsewhere {
		if reply, err = w.inspect(ctx); err != nil {
			return nil, err
		}
	}
	w.components = slices.DeleteFunc(w.components, func(c *component) bool {
		return c.joined && !c.state.GetExists() && !c.state.GetServiceExists()
	})
	return reply, nil
}

package push

import (
	"context"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// addJoined adds each of containerd, kubelet and kube-proxy that has no provisioner in the
// node file. The wanted versions of containerd and kubelet are the versions that the node
// file sets for a join, if any. kube-proxy has no wanted version, since a join does not
// install it.
func (w *work) addJoined() {
	kubernetes := w.doc.Node.Spec.Kubernetes
	for _, spec := range []v1alpha1.Provisioner{
		{Name: "containerd", Version: kubernetes.Containerd.Version},
		{Name: "kubelet", Version: kubernetes.Version},
		{Name: kubeProxy},
	} {
		spec.Destination = UsualDestination(spec.Name)
		if slices.ContainsFunc(w.components, func(c *component) bool {
			return strings.EqualFold(c.spec.Name, spec.Name)
		}) {
			continue
		}
		c := newComponent(spec)
		c.joined = true
		w.components = append(w.components, c)
	}
}

// kubeProxy is a component that is not a service on every node: often kube-proxy runs in a pod.
const kubeProxy = "kube-proxy"

// inspectWithJoined inspects all components, including the ones that addJoined added. It drops a
// component that is neither in the node file nor on the node. kube-proxy counts as being on the
// node only if it is a service. If a service runs the component's program from another folder,
// inspectWithJoined inspects the program in that folder.
func (w *work) inspectWithJoined(ctx context.Context) (view, error) {
	now, err := w.inspect(ctx)
	if err != nil {
		return view{}, err
	}
	elsewhere := false
	for _, c := range now.components {
		if !c.joined || c.state.GetService() == nil {
			continue
		}
		if runs := c.misplaced(); runs != "" {
			c.spec.Destination, elsewhere = runs, true
		}
	}
	if elsewhere {
		if now, err = w.inspect(ctx); err != nil {
			return view{}, err
		}
	}
	now.components = slices.DeleteFunc(now.components, func(c seen) bool {
		return c.joined && c.state.GetService() == nil && (c.spec.Name == kubeProxy || !c.state.GetExists())
	})
	return now, nil
}

package up

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// existingPlane is the control plane of a cluster that another tool has made. up and down change
// neither it nor its kubeconfig.
type existingPlane struct{ *work }

// ensure makes nothing: it reports whether the API server answers and accepts the kubeconfig's user.
func (w existingPlane) ensure(ctx context.Context, r ui.Reporter) (done, error) {
	api, err := existing.Open(w.cluster)
	if err != nil {
		return done{}, err
	}
	r.Step("connecting to %s", api.Server())
	version, err := existing.Version(ctx, w.cluster, api)
	if err != nil {
		return done{}, err
	}
	if err := existing.CheckSubnets(ctx, w.cluster, api); err != nil {
		return done{}, err
	}
	return done{message: "Kubernetes " + version + " at " + api.Server() + ", not made by swdt"}, nil
}

// access returns the access to the cluster. Nodes reach the API server at the address that the
// cluster itself has for them.
func (w existingPlane) access(context.Context) (controlPlane, error) {
	api, err := existing.Open(w.cluster)
	return controlPlane{api: api}, err
}

// OtherPlaneError reports a document that names an existing control plane, although up has made a
// cluster of the same name with kind. With this document, down could not remove that cluster.
type OtherPlaneError struct{ Name string }

func (e *OtherPlaneError) Error() string {
	return fmt.Sprintf("`swdt up` has made a cluster %s with kind, but its document names an existing control plane: "+
		"choose another metadata.name, or set controlPlane.kind again and remove that cluster with `swdt down`", e.Name)
}

// inDocument converts the problems of a pod network's settings to problems with the document's
// fields, since `swdt up` has no flags for these settings.
func (w *work) inDocument(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, w.inDocument(one))
		}
		return errors.Join(all...)
	}
	var (
		other   *cni.OtherNetworkError
		setting *cni.SettingError
	)
	const field = "spec.network."
	problem := func(name, what, remedy string) error {
		return &config.Error{Problems: []config.Problem{w.cluster.Problem(field+name, what, remedy)}}
	}
	switch {
	case errors.As(err, &other):
		return problem("plugin", fmt.Sprintf("is %s, but the cluster has the pod network %s already, and two do not "+
			"work together", other.Wanted, other.Found),
			fmt.Sprintf("write plugin: none to leave the cluster's network as it is, or remove it before %s is installed",
				other.Wanted))
	case errors.As(err, &setting) && setting.Flag == "pod-cidr":
		return problem("podSubnet", setting.Reason(), "write the pods' addresses, such as 10.244.0.0/16")
	case errors.As(err, &setting) && setting.Flag == "service-cidr":
		return problem("serviceSubnet", setting.Reason(), "write the Services' addresses, such as 10.96.0.0/12")
	case errors.As(err, &setting): // the address of the API server, for which the document has no field
		install := remedy.Command("network", "install", w.cluster.Cluster.Spec.Network.Plugin, "--api-server", "HOST:PORT")
		return problem("plugin", "cannot be installed: "+setting.Reason(), "install it with "+install+
			", and write plugin: none")
	}
	return err
}

package up

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
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

// inDocument converts the problems of the settings o to problems with the fields of the document from
// which the settings come. It returns unchanged the problem of a setting that the document does not
// have, or that does not come from it.
func inDocument(doc config.ClusterDocument, o podnetwork.Options, err error) error {
	spec := doc.Cluster.Spec.Network
	services := strings.Join(o.Settings.ServiceCIDRs, ",")
	return eachError(err, func(err error) error {
		var (
			other   *cni.OtherNetworkError
			setting *cni.SettingError
		)
		errors.As(err, &setting)
		of := func(flag string) bool { return setting != nil && setting.Flag == flag }
		switch {
		case errors.As(err, &other) && spec.Plugin == string(o.Settings.Network):
			return networkProblem(doc, "plugin", fmt.Sprintf("is %s, but the cluster has the pod network %s already, and "+
				"two do not work together", other.Wanted, other.Found),
				fmt.Sprintf("write plugin: none to leave the cluster's network as it is, or remove it before %s is installed",
					other.Wanted))
		case of("pod-cidr") && spec.PodSubnet == o.Settings.PodCIDR:
			return networkProblem(doc, "podSubnet", setting.Reason(), "write the pods' addresses, such as 10.244.0.0/16")
		case of("service-cidr") && spec.ServiceSubnet == services:
			return networkProblem(doc, "serviceSubnet", setting.Reason(), "write the Services' addresses, such as 10.96.0.0/12")
		}
		return err
	})
}

// withoutFlag converts the problem of a setting that has neither a field in the document nor a flag of
// `swdt up`. The address of the API server is such a setting.
func (w *work) withoutFlag(err error) error {
	return eachError(err, func(err error) error {
		var setting *cni.SettingError
		if !errors.As(err, &setting) {
			return err
		}
		install := remedy.Command("network", "install", w.cluster.Cluster.Spec.Network.Plugin, "--api-server", "HOST:PORT")
		return networkProblem(w.cluster, "plugin", "cannot be installed: "+setting.Reason(), "install it with "+install+
			", and write plugin: none")
	})
}

// networkProblem returns a problem with a field of spec.network.
func networkProblem(doc config.ClusterDocument, field, what, remedy string) error {
	return &config.Error{Problems: []config.Problem{doc.Problem("spec.network."+field, what, remedy)}}
}

// eachError returns err with each error that it joins converted.
func eachError(err error, convert func(error) error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return convert(err)
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, eachError(one, convert))
	}
	return errors.Join(all...)
}

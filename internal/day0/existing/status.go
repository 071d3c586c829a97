package existing

import (
	"context"
	"errors"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/fleet"
)

// Status contacts the cluster of a document, which another tool has made, and returns its status. The
// status lists the addresses that differ from the document. It has no containers, since the cluster is
// not one of kind. The error is that of Open or of Version.
func Status(ctx context.Context, doc config.ClusterDocument) (kindcluster.Opened, error) {
	opened := kindcluster.Opened{Report: kindcluster.Report{
		Outcome:    fleet.NewOutcome(doc.Cluster.Metadata.Name, fleet.OK, nil),
		Containers: []kindcluster.Container{}, Changes: []string{}, Differences: []config.Problem{},
	}}
	api, err := Open(doc)
	if err != nil {
		return opened, err
	}
	if opened.Context, err = ContextName(doc); err != nil {
		return opened, err
	}
	opened.API, opened.Server = api, api.Server()
	if opened.Version, err = Version(ctx, doc, api); err != nil {
		return opened, err
	}
	var different *config.Error
	if err = CheckSubnets(ctx, doc, api); errors.As(err, &different) {
		opened.Differences, err = different.Problems, nil
	}
	return opened, err
}

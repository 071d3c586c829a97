package kindcluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
)

// imageField is the field of a document that names kind's node image.
const imageField = "spec.controlPlane.kind.image"

// checkNodeImage returns a problem if the container runtime has the document's node image for another
// processor. kind pulls an image that the runtime does not have.
func (c *Clusters) checkNodeImage(ctx context.Context, doc config.ClusterDocument) []config.Problem {
	image := doc.Cluster.Spec.ControlPlane.Kind.Image
	if image == "" {
		return nil
	}
	architecture, err := c.kind.ImageArchitecture(ctx, image)
	if err != nil {
		return nil // kind pulls the image; explain reports a pull that fails
	}
	info, err := c.kind.RuntimeInfo(ctx)
	if err != nil || info.Architecture == "" || info.Architecture == architecture {
		return nil
	}
	return []config.Problem{doc.Problem(imageField,
		fmt.Sprintf("%s is an image for %s, but your container runtime runs on %s", image, architecture, info.Architecture),
		fmt.Sprintf("name an image for %s, or pull it again with --platform linux/%[1]s", info.Architecture))}
}

// oldCgroups is the text about a machine with version 1 of control groups.
const oldCgroups = "your machine has version 1 of control groups (cgroups), with which the kubelet of Kubernetes 1.35 " +
	"and later does not start, unless the node image allows it: boot your machine with the kernel parameter " +
	"systemd.unified_cgroup_hierarchy=1, or name an older node image in " + imageField

// warnOfCgroups warns if the machine has version 1 of control groups.
func (c *Clusters) warnOfCgroups(ctx context.Context, r ui.Reporter) {
	if info, err := c.kind.RuntimeInfo(ctx); err == nil && info.OldCgroups {
		r.Warn("%s", oldCgroups)
	}
}

// ImageError reports that kind could not make a cluster, since the container runtime has no node image.
type ImageError struct {
	Problem config.Problem // names the document's field
	Err     error          // the failure of kind
}

func (e *ImageError) Error() string { return e.Problem.String() }
func (e *ImageError) Unwrap() error { return e.Err }

// explain adds the likely cause to the error of a create that has failed. image is the node image with
// which kind began. If the container runtime does not have this image, the error is an *ImageError.
func (c *Clusters) explain(ctx context.Context, doc config.ClusterDocument, image string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if _, silent := c.kind.ListNodes(doc.Cluster.Metadata.Name); silent != nil {
		return errors.Join(err, failed(silent, "the container runtime does not answer any more"))
	}
	if _, missing := c.kind.ImageID(ctx, image); missing != nil {
		return &ImageError{Err: err, Problem: doc.Problem(imageField,
			fmt.Sprintf("the container runtime has no image %s: %v", image, err),
			"correct the name and the digest, or load the image into the container runtime")}
	}
	if info, unknown := c.kind.RuntimeInfo(ctx); unknown == nil && info.OldCgroups {
		return errors.Join(err, errors.New(oldCgroups))
	}
	return err
}

package up

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
)

// manifestInDocument converts an error about the pod network's manifest to a problem with the field
// that names the manifest, since `swdt up` has no flags for it. It returns any other error unchanged.
func manifestInDocument(doc config.ClusterDocument, err error) error {
	var (
		unverified *podnetwork.UnverifiedError
		mismatch   *podnetwork.MismatchError
		wrong      *cni.ManifestError
	)
	wanted := doc.Cluster.Spec.Network
	switch {
	case errors.As(err, &unverified):
		return networkProblem(doc, "sha256", "is missing, and swdt does not know the hash of "+unverified.Source,
			"verify that file and write its hash, or download it, read it, and name the file in manifest")
	case errors.As(err, &mismatch) && wanted.SHA256 != "":
		return networkProblem(doc, "sha256",
			fmt.Sprintf("is %s, but %s has %s", mismatch.Want, mismatch.Source, mismatch.Got),
			"find out who changed the file, or correct the hash")
	case errors.As(err, &wrong) && wanted.Manifest != "":
		return networkProblem(doc, "manifest", wrong.Error(), "name one of "+wanted.Plugin)
	case errors.Is(err, fs.ErrNotExist) && wanted.Manifest != "":
		return networkProblem(doc, "manifest", "there is no file "+doc.Resolve(wanted.Manifest), "correct the path")
	}
	return err
}

package up

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/swdt-dev/swdt/api/v1alpha1"
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
		return unverifiedProblems(doc, append([]string{unverified.Source}, unverified.More...))
	case errors.As(err, &mismatch) && wanted.SHA256+wanted.CRDSHA256+wanted.WindowsSHA256 != "":
		field := "sha256"
		switch mismatch.Want {
		case wanted.CRDSHA256:
			field = "crdSHA256"
		case wanted.WindowsSHA256:
			field = "windowsSHA256"
		}
		return networkProblem(doc, field,
			fmt.Sprintf("is %s, but %s has %s", mismatch.Want, mismatch.Source, mismatch.Got),
			"find out who changed the file, or correct the hash")
	case errors.As(err, &wrong) && wanted.Manifest != "":
		remedy := "name one of " + wanted.Plugin
		switch wanted.Plugin {
		case v1alpha1.CalicoPlugin:
			remedy += ", and since v3.30, operator-crds.yaml in crdManifest"
		case v1alpha1.AntreaPlugin:
			remedy = "name antrea.yml there, and antrea-windows-with-ovs.yml in windowsManifest"
		}
		return networkProblem(doc, "manifest", wrong.Error(), remedy)
	case errors.Is(err, fs.ErrNotExist) && wanted.Manifest != "":
		return missingManifests(doc)
	}
	return err
}

// unverifiedProblems returns a problem for each manifest whose hash is not known.
func unverifiedProblems(doc config.ClusterDocument, sources []string) error {
	network := doc.Cluster.Spec.Network
	release := cni.ReleaseOf(cni.Network(network.Plugin), network.Version, "")
	var all []config.Problem
	for _, source := range sources {
		hash, manifest := "sha256", "manifest"
		switch source {
		case release.CRDsURL, doc.Resolve(network.CRDManifest):
			hash, manifest = "crdSHA256", "crdManifest"
		case release.WindowsURL, doc.Resolve(network.WindowsManifest):
			hash, manifest = "windowsSHA256", "windowsManifest"
		}
		all = append(all, doc.Problem("spec.network."+hash, "is missing, and swdt does not know the hash of "+source,
			"verify that file and write its hash, or download it, read it, and name the file in "+manifest))
	}
	return &config.Error{Problems: all}
}

// missingManifests returns a problem for the first manifest of the document that does not exist.
func missingManifests(doc config.ClusterDocument) error {
	wanted := doc.Cluster.Spec.Network
	field, file := "manifest", doc.Resolve(wanted.Manifest)
	if _, err := os.Stat(file); err == nil {
		switch {
		case wanted.CRDManifest != "":
			field, file = "crdManifest", doc.Resolve(wanted.CRDManifest)
		case wanted.WindowsManifest != "":
			field, file = "windowsManifest", doc.Resolve(wanted.WindowsManifest)
		}
	}
	return networkProblem(doc, field, "there is no file "+file, "correct the path")
}

// Package manifest writes what package managers read: a Homebrew formula, manifests for Scoop and winget,
// and krew's manifest for `kubectl swdt`. They name the archives of a release with their hashes.
//
// manifest.go has the release, homebrew.go, windows.go and krew.go one format each.
package manifest

import (
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/tools/release/payload"
	"github.com/swdt-dev/swdt/tools/release/version"
)

const (
	homepage    = "https://github.com/swdt-dev/swdt"
	licence     = "Apache-2.0"
	description = "Set up Windows nodes of Kubernetes, push binaries to them, and inspect them"
)

// Release is a release whose archives exist.
type Release struct {
	Version  version.Version
	Time     time.Time
	Archives []Archive
}

// Archive is a published archive.
type Archive struct {
	Target payload.Target
	Name   string
	SHA256 string
}

func (r Release) url(a Archive) string {
	return homepage + "/releases/download/" + r.Version.Tag() + "/" + a.Name
}

func (r Release) archive(os, arch string) (Archive, error) {
	for _, a := range r.Archives {
		if a.Target == (payload.Target{OS: os, Arch: arch}) {
			return a, nil
		}
	}
	return Archive{}, fmt.Errorf("the release has no archive for %s/%s", os, arch)
}

// Write returns all manifests by their file names. Those of winget have the names that it requires.
func (r Release) Write() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, write := range []func(map[string][]byte) error{r.homebrew, r.scoop, r.winget, r.krew} {
		if err := write(all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

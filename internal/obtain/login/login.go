// Package login finds your login for an OCI registry, where docker login and its likes keep it: in
// Docker's config.json, or with the credential helpers that this file names.
package login

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// Docker returns the logins of Docker's configuration: the file config.json in $DOCKER_CONFIG, else
// in the folder .docker of your home. Without such a file, there is no login. For a registry with a
// credential helper, the helper program runs when the registry demands a login.
func Docker() (auth.CredentialFunc, error) {
	folder := os.Getenv("DOCKER_CONFIG")
	if folder == "" {
		home, err := localfile.Home()
		if err != nil {
			return nil, fmt.Errorf("find Docker's configuration: %w", err)
		}
		folder = filepath.Join(home, ".docker")
	}
	return File(filepath.Join(folder, "config.json"))
}

// File returns the logins of a file in the form of Docker's config.json, such as a pull secret of
// Kubernetes. The errors have nothing of the file's content.
func File(path string) (auth.CredentialFunc, error) {
	store, err := credentials.NewStore(path, credentials.StoreOptions{})
	if err != nil { // err may quote the file
		return nil, fmt.Errorf("read %s: it is no configuration of Docker: correct it, or log in again with "+
			"`docker login REGISTRY`", path)
	}
	return func(ctx context.Context, host string) (auth.Credential, error) {
		credential, err := credentials.Credential(store)(ctx, host)
		if err != nil { // err may quote the file or a helper
			return auth.EmptyCredential, &Error{Path: path, Registry: host}
		}
		return credential, nil
	}, nil
}

// Error reports that a login could not be read.
type Error struct{ Path, Registry string }

func (e *Error) Error() string {
	return fmt.Sprintf("get the login for %s: %s, or a credential helper that it names, does not give it: log in again "+
		"with `docker login %s`", e.Registry, e.Path, e.Registry)
}

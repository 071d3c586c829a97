package distribution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// maxPullSecret is the maximum size of a pull secret in bytes, as Kubernetes limits Secrets.
const maxPullSecret = 1 << 20

// PullSecret returns the logins of a file in the form of Docker's config.json, as Kubernetes
// mounts a Secret of type kubernetes.io/dockerconfigjson. It runs no credential helpers. The
// error has nothing of the file's content.
func PullSecret(path string) (auth.CredentialFunc, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the pull secret: %w", err)
	}
	defer file.Close()
	content, err := readAll(file, maxPullSecret)
	if err != nil {
		return nil, fmt.Errorf("read the pull secret %s: %w", path, err)
	}
	store, err := credentials.NewMemoryStoreFromDockerConfig(content)
	if err != nil { // err may quote the file
		return nil, fmt.Errorf("read the pull secret %s: it is no config.json of Docker: make it with "+
			"`kubectl create secret docker-registry`", path)
	}
	return credentials.Credential(store), nil
}

// MountedPullSecret returns the logins of a file that may be missing, and that may change or appear at
// any time, as that of an optional Secret in a pod. It reads the file anew for each login.
func MountedPullSecret(path string) auth.CredentialFunc {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		credential, err := PullSecret(path)
		if errors.Is(err, fs.ErrNotExist) {
			return auth.EmptyCredential, nil
		}
		if err != nil {
			return auth.EmptyCredential, err
		}
		return credential(ctx, host)
	}
}

package imagepull

import (
	"context"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// NoLogins sends no login to any node.
func NoLogins(context.Context, string) (*runtimev1.AuthConfig, error) { return nil, nil }

// LoginsOf sends the login for the registry of each image. The address of the server is in it, so that containerd uses it for
// that registry alone, and not for a mirror in its place (ParseAuth of the CRI plugin, internal/cri/server/images/image_pull.go
// in containerd 2.4.2, pkg/cri/server/image_pull.go before 2.0).
func LoginsOf(credential auth.CredentialFunc) Logins {
	return func(ctx context.Context, image string) (*runtimev1.AuthConfig, error) {
		at, err := distribution.ParseImage(image)
		if err != nil {
			return nil, err
		}
		has, err := credential(ctx, at.Host())
		if err != nil || has == auth.EmptyCredential {
			return nil, err
		}
		return &runtimev1.AuthConfig{ServerAddress: "https://" + at.Host(), Username: has.Username, Password: has.Password,
			IdentityToken: has.RefreshToken, RegistryToken: has.AccessToken}, nil
	}
}

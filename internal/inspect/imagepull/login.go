package imagepull

import (
	"context"
	"fmt"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// NoLogins sends no login to any node.
func NoLogins(context.Context, string) (*runtimev1.AuthConfig, error) { return nil, nil }

// LoginsOf sends the login for the registry of each image. The address of the server is in it, so that containerd uses it for
// that registry alone, and not for a mirror in its place (ParseAuth of the CRI plugin, internal/cri/server/images/image_pull.go
// in containerd 2.4.2, pkg/cri/server/image_pull.go from 1.5 on). ParseAuth prefers a user to an identity token, and refuses a
// registry token.
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
		to := &runtimev1.AuthConfig{ServerAddress: "https://" + at.Host()}
		switch {
		case has.RefreshToken != "":
			to.IdentityToken = has.RefreshToken
		case has.Username != "":
			to.Username, to.Password = has.Username, has.Password
		default:
			return nil, fmt.Errorf("send the login for %s: it is a registry token, which containerd does not take; log in with a user and a password", at.Host())
		}
		return to, nil
	}
}

package imagepull_test

import (
	"context"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/inspect/imagepull"
	"github.com/swdt-dev/swdt/internal/node/criclient"
)

// A login is for the registry of the image alone: containerd compares the address with that of the server that it asks.
func TestALoginIsForTheRegistryOfTheImage(t *testing.T) {
	logins := imagepull.LoginsOf(func(_ context.Context, host string) (auth.Credential, error) {
		if host != "registry-1.docker.io" && host != "x.test:5000" {
			return auth.EmptyCredential, nil
		}
		if host == "x.test:5000" {
			return auth.Credential{Username: "ci", Password: "s3cret"}, nil
		}
		return auth.Credential{Username: "00000000-0000", RefreshToken: "refresh"}, nil
	})
	for image, want := range map[string]string{"app": "https://registry-1.docker.io", "x.test:5000/team/app:1": "https://x.test:5000",
		"other.test/app:1": ""} {
		got, err := logins(t.Context(), image)
		if err != nil || got.GetServerAddress() != want || (got == nil) != (want == "") {
			t.Errorf("%s: %v, %v", image, got, err)
		}
		sent := got.GetUsername() + " " + got.GetPassword() + " " + got.GetIdentityToken()
		if login := map[string]string{"app": "  refresh", "x.test:5000/team/app:1": "ci s3cret "}[image]; want != "" && sent != login {
			t.Errorf("%s: %q, want %q", image, sent, login)
		}
	}
	logins = imagepull.LoginsOf(func(context.Context, string) (auth.Credential, error) {
		return auth.Credential{AccessToken: "t0ken"}, nil
	})
	if got, err := logins(t.Context(), "app"); got != nil || err == nil || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("a registry token: %v, %v", got, err)
	}
	if got, err := imagepull.NoLogins(t.Context(), "app"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// An image whose tag has moved in the registry is pulled again, and one that could not be read only if its name is not there.
func TestPlan(t *testing.T) {
	report := imagecheck.Report{
		Images: []imagecheck.ImageReport{{Image: "a", Digest: "sha256:new", Nodes: []imagecheck.NodeReport{
			{Node: "win-1", Result: imagecheck.Fits, NewBytes: 7}, {Node: "win-2", Result: imagecheck.NoMatch},
			{Node: "win-3", Result: imagecheck.Unknown}}}},
		Unread: []imagecheck.Unread{{Name: "b", Why: "no such host"}},
	}
	for name, c := range map[string]struct {
		node, image, has string
		force            bool
		pull, refused    bool
	}{
		"not there":             {node: "win-1", image: "a", pull: true},
		"there":                 {node: "win-1", image: "a", has: "sha256:new"},
		"the tag has moved":     {node: "win-1", image: "a", has: "sha256:old", pull: true},
		"no match":              {node: "win-2", image: "a", refused: true},
		"there all the same":    {node: "win-2", image: "a", has: "sha256:new"},
		"forced":                {node: "win-2", image: "a", force: true, pull: true, refused: true},
		"an unknown node":       {node: "win-3", image: "a", pull: true},
		"not read":              {node: "win-1", image: "b", pull: true},
		"not read and is there": {node: "win-1", image: "b", has: "sha256:any"},
	} {
		has := map[string]criclient.Pulled{}
		if c.has != "" {
			has[c.image] = criclient.Pulled{Name: c.image, Digest: c.has}
		}
		plan := imagepull.Plan(report, c.node, []string{c.image}, has, c.force)
		if len(plan) != 1 || plan[0].Pull != c.pull || (plan[0].Refused != "") != c.refused || (imagepull.Refusal(plan) != nil) != (c.refused && !c.force) {
			t.Errorf("%s: %+v", name, plan)
		}
	}
}

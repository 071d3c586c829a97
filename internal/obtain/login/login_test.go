package login_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/obtain/login"
)

const secret = "s3cret-passw0rd"

func configure(t *testing.T, content string) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("DOCKER_CONFIG", folder)
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func credentialOf(t *testing.T, host string) (auth.Credential, error) {
	t.Helper()
	logins, err := login.Docker()
	if err != nil {
		return auth.EmptyCredential, err
	}
	return logins(t.Context(), host)
}

func TestDockersLoginIsFound(t *testing.T) {
	configure(t, `{"auths":{"registry.example":{"auth":"Y2k6czNjcmV0LXBhc3N3MHJk"}}}`)
	got, err := credentialOf(t, "registry.example")
	if err != nil || got.Username != "ci" || got.Password != secret {
		t.Errorf("the login is of user %q, %v", got.Username, err)
	}
	if got, err := credentialOf(t, "elsewhere.example"); err != nil || got != auth.EmptyCredential {
		t.Errorf("another registry gets a login of user %q, %v", got.Username, err)
	}
}

func TestWithoutAConfigurationThereIsNoLogin(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", filepath.Join(t.TempDir(), "missing"))
	if got, err := credentialOf(t, "registry.example"); err != nil || got != auth.EmptyCredential {
		t.Errorf("a login of user %q, %v", got.Username, err)
	}
}

func TestACredentialHelperIsRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper of this test is a shell script")
	}
	folder := t.TempDir()
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	configure(t, `{"credHelpers":{"registry.example":"swdttest"}}`)
	helper := func(script string) {
		path := filepath.Join(folder, "docker-credential-swdttest")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	helper(`read server; printf '{"Username":"ci","Secret":"%s of %s"}' ` + secret + ` "$server"`)
	if got, err := credentialOf(t, "registry.example"); err != nil || got.Password != secret+" of registry.example" {
		t.Errorf("the login is of user %q, %v", got.Username, err)
	}
	helper("echo " + secret + "; exit 1")
	_, err := credentialOf(t, "registry.example")
	var failed *login.Error
	if !errors.As(err, &failed) || strings.Contains(err.Error(), secret) {
		t.Errorf("a failed helper: %v", err)
	}
}

func TestADamagedConfigurationIsNotShown(t *testing.T) {
	configure(t, `{"auths":{"registry.example":{"auth":"`+secret)
	if _, err := credentialOf(t, "registry.example"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v", err)
	}
	configure(t, `{"auths":{"registry.example":{"auth":"`+secret+`"}}}`)
	if _, err := credentialOf(t, "registry.example"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a login that is no base64: %v", err)
	}
}

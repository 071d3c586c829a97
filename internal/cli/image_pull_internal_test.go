package cli

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
)

// A node gets the login of docker login only with --send-login.
func TestALoginIsSentOnlyIfAsked(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("DOCKER_CONFIG", folder)
	config := `{"auths": {"x.test": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("ci:s3cret")) + `"}}}`
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{false, true} {
		o := &imagePullOptions{images: []string{"x.test/app:1"}, sendLogin: asked}
		a := &app{}
		a.global.parallel = 1
		if err := o.complete(a); err != nil {
			t.Fatal(err)
		}
		got, err := o.logins(t.Context(), "x.test/app:1")
		if err != nil || (got.GetPassword() == "s3cret") != asked || (got == nil) == asked {
			t.Errorf("asked for: %t; %v, %v", asked, got, err)
		}
	}
}

package imagecheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// serve makes a registry answer each request for a manifest with a text.
func serve(r *registrytest.Registry, text string) {
	r.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if !strings.Contains(request.URL.Path, "/manifests/") {
			return false
		}
		_, _ = w.Write([]byte(text)) // it fails only if the client has gone
		return true
	})
}

// A hostile registry sends what no registry sends. Nothing of it is believed, and errors quote none of it.
func TestHostileManifests(t *testing.T) {
	served := registrytest.Start(t)
	registry := mirrored(t, served)
	digest := "sha256:" + strings.Repeat("0a", 32)
	entry := func(platform string) string {
		return `{"digest":"` + digest + `","size":1,"platform":` + platform + `}`
	}
	index := func(entries ...string) string {
		return `{"schemaVersion":2,"manifests":[` + strings.Join(entries, ",") + `]}`
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = entry("{}")
	}
	layers := strings.Repeat(`{"digest":"`+digest+`","size":1},`, 1001)
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":            {"<html>secret-of-the-proxy", "no JSON of a manifest"},
		"another kind":       {`{"schemaVersion":2}`, "neither manifests nor a configuration"},
		"version 1":          {`{"schemaVersion":1,"manifests":[]}`, "another version than 2"},
		"both kinds":         {`{"schemaVersion":2,"manifests":[],"config":{"digest":"` + digest + `","size":1}}`, "is an index too"},
		"too many manifests": {index(many...), "more than 1000 manifests"},
		"too many layers": {`{"schemaVersion":2,"config":{"digest":"` + digest + `","size":1},"layers":[` + strings.TrimSuffix(layers, ",") + `]}`,
			"more than 1000 layers"},
		"too large":                 {index(entry("{}")) + strings.Repeat(" ", 1<<20), "beyond the limit of 1048576 bytes"},
		"no digest":                 {index(`{"digest":"../../etc/passwd","size":1}`), "without a digest of SHA-256"},
		"another algorithm":         {index(`{"digest":"md5:0a","size":1}`), "without a digest of SHA-256"},
		"a negative size":           {index(`{"digest":"` + digest + `","size":-1}`), "impossible size"},
		"an impossible size":        {index(`{"digest":"` + digest + `","size":9223372036854775807}`), "impossible size"},
		"a long version":            {index(entry(`{"os":"windows","os.version":"` + strings.Repeat("1", 300) + `"}`)), "more than 200 bytes"},
		"many features":             {index(entry(`{"os.features":[` + strings.Repeat(`"a",`, 300) + `"a"]}`)), "more than 200 features"},
		"a platform that is a text": {index(entry(`"windows"`)), "no JSON of a manifest"},
	} {
		serve(served, c.text)
		report := run(t, registry, []imagecheck.Node{node("10.0.20348.1", "2.4.2")}, imagecheck.Use{Image: "x.test/team/app:1"})
		if len(report.Images) != 0 || len(report.Unread) != 1 {
			t.Errorf("%s: %+v", name, report)
			continue
		}
		why := report.Unread[0].Why
		if !strings.Contains(why, c.want) || strings.Contains(why, "secret") || strings.Contains(why, "passwd") || len(why) > 400 {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// An index in an index, and a configuration that is none, are refused when they are read.
func TestHostileParts(t *testing.T) {
	served := registrytest.Start(t)
	inner := served.PutIndex(t, "team/app", "inner", []registrytest.Manifest{{Config: json.RawMessage("{}")}})
	outer := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"digest":"%s","size":1,"platform":{"os":"windows","architecture":"amd64"}}]}`, inner)
	served.PutManifest(t, "team/app", "outer", []byte(outer))
	served.PutImage(t, "team/app", "text", registrytest.Manifest{Config: json.RawMessage("windows")})
	served.PutImage(t, "team/app", "long", registrytest.Manifest{Config: json.RawMessage(`{"os":"` + strings.Repeat("w", 300) + `"}`)})
	for tag, want := range map[string]string{"outer": "an index is in the index", "text": "its configuration is no JSON", "long": "more than 200 bytes"} {
		report := run(t, mirrored(t, served), []imagecheck.Node{node("10.0.20348.1", "2.4.2")}, imagecheck.Use{Image: "x.test/team/app:" + tag})
		if len(report.Unread) != 1 || !strings.Contains(report.Unread[0].Why, want) {
			t.Errorf("%s: %+v", tag, report)
		}
	}
}

// The manifest of an index has the digest that the index names, and so has a configuration.
func TestOtherContentIsRefused(t *testing.T) {
	served, registry := recorded(t)
	served.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if strings.Contains(request.URL.Path, "@") || !strings.Contains(request.URL.Path, "/manifests/sha256:") {
			return false
		}
		_, _ = w.Write([]byte(`{"schemaVersion":2,"config":{"digest":"sha256:` + strings.Repeat("0a", 32) + `","size":1},"layers":[]}`))
		return true
	})
	report := run(t, registry, []imagecheck.Node{node("10.0.20348.1", "2.4.2")}, imagecheck.Use{Image: "hello-world:nanoserver"})
	if len(report.Unread) != 1 || !strings.Contains(report.Unread[0].Why, "do not use this registry") {
		t.Errorf("%+v", report.Unread)
	}
	for name, blob := range map[string]struct {
		size          int64
		content, want string
	}{
		"other bytes": {20, "{}", "do not use this registry"}, "more bytes": {1, strings.Repeat(" ", 1<<16), "beyond the limit of 1 bytes"},
		"a large one": {1 << 30, "", "beyond the limit of 1048576 bytes"},
	} {
		manifest := fmt.Sprintf(`{"schemaVersion":2,"layers":[],"config":{"digest":"sha256:%s","size":%d}}`, strings.Repeat("0b", 32), blob.size)
		served.Intercept(nil)
		served.PutManifest(t, "team/app", "1", []byte(manifest))
		served.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
			if !strings.Contains(request.URL.Path, "/blobs/") {
				return false
			}
			_, _ = w.Write([]byte(blob.content))
			return true
		})
		report := run(t, registry, []imagecheck.Node{node("10.0.20348.1", "2.4.2")}, imagecheck.Use{Image: "x.test/team/app:1"})
		if len(report.Unread) != 1 || !strings.Contains(report.Unread[0].Why, blob.want) {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// Texts of an index cannot move the terminal's cursor.
func TestEscapesAreShown(t *testing.T) {
	served := registrytest.Start(t)
	served.PutIndex(t, "team/app", "1", []registrytest.Manifest{{
		Platform: json.RawMessage(`{"os":"windows","architecture":"amd64","os.version":"10.0.20348.1\u001b[2J\u202e"}`)}})
	report := run(t, mirrored(t, served), []imagecheck.Node{node("10.0.20348.1", "1.7.5")}, imagecheck.Use{Image: "x.test/team/app:1"})
	var out bytes.Buffer
	page := ui.NewPage(&out, false)
	page.Wide = true
	if err := report.WriteText(page); err != nil {
		t.Fatal(err)
	}
	if err := page.Flush(); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, `10.0.20348.1\x1b[2J`) {
		t.Errorf("%q", text)
	}
}

const password = "s3cret-passw0rd"

// The login of a mirror goes to the mirror alone, and that of a registry not to its mirror; a redirect carries none.
func TestLoginsStayWithTheirRegistry(t *testing.T) {
	served, _ := recorded(t)
	registry := mirrored(t, served)
	var asked []string
	registry.Credential = func(_ context.Context, host string) (auth.Credential, error) {
		asked = append(asked, host)
		return auth.Credential{Username: "ci", Password: password}, nil
	}
	served.RequireLogin("ci", password)
	report := run(t, registry, []imagecheck.Node{node("10.0.20348.1", "2.4.2")}, imagecheck.Use{Image: "hello-world:nanoserver"})
	if len(report.Images) != 1 {
		t.Fatalf("%+v", report.Unread)
	}
	for _, host := range asked {
		if host != served.Host {
			t.Errorf("the login of %s was asked for", host)
		}
	}

	var seen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization")+r.Header.Get("Referer"))
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(thief.Close)
	served.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		http.Redirect(w, request, thief.URL+request.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
	report = run(t, registry, []imagecheck.Node{node("10.0.20348.1", "2.4.2")}, imagecheck.Use{Image: "hello-world:nanoserver"})
	if len(report.Unread) != 1 || strings.Contains(report.Unread[0].Why, password) || strings.Contains(report.Unread[0].Why, thief.URL) {
		t.Errorf("%+v", report)
	}
	if len(seen) != 1 || seen[0] != "" {
		t.Errorf("the other server saw %q", seen)
	}
}

func TestParseMirror(t *testing.T) {
	for _, text := range []string{"", "mcr.microsoft.com", "=https://x", "a/b=https://x", "a=ftp://x", "a=https://", "a=https://x?y=z",
		"a=https://ci:" + password + "@x.test", "a=https://x.test/Upper"} {
		_, _, err := imagecheck.ParseMirror(text)
		if err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// The mirror has the images below a path.
	served := registrytest.Start(t)
	put(t, served, "x.test/cache/windows/nanoserver:ltsc2022", "10.0.20348.1")
	host, mirror, err := imagecheck.ParseMirror("mcr.microsoft.com=http://" + served.Host + "/cache/")
	if err != nil {
		t.Fatal(err)
	}
	registry := &imagecheck.Registry{Mirrors: map[string]imagecheck.Mirror{host: mirror}}
	if _, err := registry.Open(t.Context(), "mcr.microsoft.com/windows/nanoserver:ltsc2022"); err != nil {
		t.Error(err)
	}
	if _, err := registry.Open(t.Context(), "mcr.microsoft.com/windows/servercore:ltsc2022"); !distribution.NotFound(err) {
		t.Errorf("an image that the mirror lacks: %v", err)
	}
}

package imagecheck

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Registry reads images from registries, or from their mirrors.
type Registry struct {
	// Credential returns the login for a registry. Default: no login.
	Credential auth.CredentialFunc
	// HTTP makes the requests. Default: see distribution.Options.
	HTTP *http.Client
	// Mirrors are the places from which images are read instead, by the host of their registry; anyRegistry is the place for
	// all others.
	Mirrors map[string]Mirror
}

// Mirror is a registry with copies of the images of another one.
type Mirror struct {
	host   string
	prefix string // of its repositories, with a slash at the end; "" for none
	plain  bool
}

// anyRegistry is the name that stands for all registries without a mirror of their own, as in containerd's configuration.
const anyRegistry = "_default"

// ParseMirror parses HOST=URL, such as mcr.microsoft.com=https://registry.example/mcr. A path of the URL is written before
// the names of repositories. The error quotes no login that is in the URL.
func ParseMirror(text string) (host string, m Mirror, err error) {
	host, address, ok := strings.Cut(text, "=")
	u, err := url.Parse(address)
	switch {
	case !ok || host == "" || strings.ContainsAny(host, "/ "):
		return "", m, fmt.Errorf("write HOST=URL, such as mcr.microsoft.com=https://registry.example")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return "", m, fmt.Errorf("write the mirror of %s as https://HOST or https://HOST/PATH", host)
	case u.User != nil:
		return "", m, fmt.Errorf("the URL of the mirror of %s has a login in it: leave it out, and log in with docker login", host)
	}
	m = Mirror{host: u.Host, plain: u.Scheme == "http"}
	if path := strings.Trim(u.Path, "/"); path != "" {
		m.prefix = path + "/"
	}
	if _, err := m.of(distribution.Reference{Registry: host, Repository: "a", Tag: "b"}); err != nil {
		return "", m, fmt.Errorf("write the mirror of %s as https://HOST or https://HOST/PATH: its path is no name of repositories", host)
	}
	return host, m, nil
}

// of returns the place of an image in the mirror.
func (m Mirror) of(r distribution.Reference) (distribution.Reference, error) {
	scheme := distribution.Scheme
	if m.plain {
		scheme = distribution.PlainScheme
	}
	name := strings.TrimPrefix(r.Name(), r.Registry+"/")
	return distribution.ParseReference(scheme + "://" + m.host + "/" + m.prefix + name)
}

// locate returns the place from which an image is read.
func (r *Registry) locate(name string) (distribution.Reference, error) {
	at, err := distribution.ParseImage(name)
	if err != nil {
		return at, err
	}
	m, ok := r.Mirrors[at.Registry]
	if !ok {
		m, ok = r.Mirrors[anyRegistry]
	}
	if !ok {
		return at, nil
	}
	return m.of(at)
}

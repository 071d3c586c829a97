package distribution

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
)

// Options configure a Repository; zero fields have defaults.
type Options struct {
	// Credential returns the login for a registry. Default: no login.
	Credential auth.CredentialFunc
	// HTTP makes the requests. Default: a client that uses the proxy of the environment and waits a
	// minute for the first byte of an answer. The caller's context bounds the rest.
	HTTP *http.Client
}

// Repository is a repository of a registry. It is safe for concurrent use.
type Repository struct {
	reference Reference
	client    *auth.Client
}

// Open returns the repository of a reference. It contacts no registry.
func Open(reference Reference, o Options) *Repository {
	return &Repository{reference: reference, client: NewClient(o)}
}

// Reference returns the reference that the repository was opened with.
func (r *Repository) Reference() Reference { return r.reference }

// WithDigest returns the same repository with the reference of a digest. Both share the login.
func (r *Repository) WithDigest(digest string) *Repository {
	return &Repository{reference: r.reference.WithDigest(digest), client: r.client}
}

// NewClient returns a client that logs in when a registry demands it. It sends a login to the
// registry and to the token server that the registry names, and never with less protection than
// the registry's own address has. A registry without TLS names no other token server without TLS. A redirect to
// another server carries no login, and none leads from https to http.
func NewClient(o Options) *auth.Client {
	client := http.Client{Transport: newTransport()}
	if o.HTTP != nil {
		client = *o.HTTP
	}
	servers := &tokenServers{RoundTripper: cmp.Or(client.Transport, http.DefaultTransport), named: map[string]string{}}
	client.Transport = servers
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		return cmp.Or(checkRedirect(next, via), servers.checkRedirect(next.URL, via[0].URL))
	}
	c := &auth.Client{Client: &client, Cache: auth.NewCache(), Credential: o.Credential}
	c.SetUserAgent("swdt")
	return c
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   20 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		DisableCompression:    true, // a compressed answer would have other lengths and ranges
	}
}

func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return &RedirectError{What: "more than 10 times"}
	}
	// The address before may contain a token, which the next server must not see.
	next.Header.Del("Referer")
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return &RedirectError{What: "from https to " + next.URL.Scheme}
	}
	return nil
}

// get requests a path below that of the repository. The caller closes the answer's body.
func (r *Repository) get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	return r.getQuery(ctx, path, nil, header)
}

// getQuery is like get, with parameters.
func (r *Repository) getQuery(ctx context.Context, path string, query url.Values, header http.Header) (*http.Response, error) {
	scheme := "https"
	if r.reference.PlainHTTP {
		scheme = "http"
	}
	address := url.URL{Scheme: scheme, Host: r.reference.Host(), Path: "/v2/" + r.reference.Repository + "/" + path,
		RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.reference.Name(), err)
	}
	request.Header = header
	// The token must be for this repository, whatever the registry's challenge asks for.
	scoped := auth.AppendRepositoryScope(ctx, r.reference.ociReference(), auth.ActionPull)
	response, err := r.client.Do(request.WithContext(scoped))
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	return response, nil
}

// readAll reads an answer of at most limit bytes.
func readAll(body io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	return data, err
}

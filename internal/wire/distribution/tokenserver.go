package distribution

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// tokenServers keeps a registry that is reached without TLS from naming any address as its token server, such as one
// that only this machine reaches: the answer would be sent to the registry, as a token. Such a registry may name its
// own host, or a server with TLS. Package auth keeps a registry with TLS from naming a server without.
type tokenServers struct {
	http.RoundTripper

	mu    sync.Mutex
	named map[string]string // the host of the registry, by the address of the token server without its query
}

// RoundTrip makes a request, and checks the token server that the answer names.
func (s *tokenServers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized || request.URL.Scheme != "http" {
		return response, err
	}
	if err := s.check(request.URL.Hostname(), response.Header.Get("Www-Authenticate")); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// check returns a *TokenServerError if a registry may not make its challenge.
func (s *tokenServers) check(registry, challenge string) error {
	if len(challenge) < len("bearer") || !strings.EqualFold(challenge[:len("bearer")], "bearer") {
		return nil // no token server
	}
	realm, ok := realmOf(challenge[len("bearer"):])
	server, err := url.Parse(realm)
	if !ok || err != nil {
		return &TokenServerError{Registry: registry}
	}
	if !isTokenServer(server, registry) {
		return &TokenServerError{Registry: registry, Server: server.Host}
	}
	s.mu.Lock()
	s.named[withoutQuery(server)] = registry
	s.mu.Unlock()
	return nil
}

// checkRedirect returns a *TokenServerError if a token server leads to an address that the registry may not name.
func (s *tokenServers) checkRedirect(next, first *url.URL) error {
	s.mu.Lock()
	registry, ok := s.named[withoutQuery(first)]
	s.mu.Unlock()
	if ok && !isTokenServer(next, registry) {
		return &TokenServerError{Registry: registry, Server: next.Host}
	}
	return nil
}

func isTokenServer(server *url.URL, registry string) bool {
	return server.Scheme == "https" || server.Scheme == "http" && strings.EqualFold(server.Hostname(), registry)
}

func withoutQuery(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// parameter is one parameter of a challenge, and what follows it. Escapes are not understood.
var parameter = regexp.MustCompile(`^[ \t]*([^\s=,"]+)[ \t]*=[ \t]*(?:"([^"\\]*)"|([^\s,"]+))[ \t]*(?:,|$)`)

// realmOf returns the realm of the parameters of a challenge. It returns false if they are not understood as a whole,
// or have no realm, or two.
func realmOf(parameters string) (realm string, ok bool) {
	for parameters != "" {
		m := parameter.FindStringSubmatch(parameters)
		if m == nil {
			return "", false
		}
		parameters = parameters[len(m[0]):]
		if m[1] == "realm" {
			if ok {
				return "", false
			}
			realm, ok = m[2]+m[3], true
		}
	}
	return realm, ok
}

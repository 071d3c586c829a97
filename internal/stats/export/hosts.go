package export

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// OnlyHosts refuses requests that name another host than an IP address, localhost or
// one of names. A page in a browser on this machine can let its own name resolve to
// 127.0.0.1 and would then read what is served here (DNS rebinding); such a request
// names the page's host.
func OnlyHosts(names []string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		_, err := netip.ParseAddr(host)
		known := func(name string) bool { return strings.EqualFold(strings.TrimSuffix(name, "."), host) }
		if err != nil && !known("localhost") && !slices.ContainsFunc(names, known) {
			text := fmt.Sprintf("host %q is not served here: ask for an IP address or localhost, or start `swdt stats serve` with --host", host)
			http.Error(w, text, http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// hostOf is a Host header without its port, the brackets of an IPv6 address and the
// dot that ends a full name.
func hostOf(header string) string {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

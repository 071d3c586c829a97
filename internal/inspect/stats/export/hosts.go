package export

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// OnlyHosts returns a handler that refuses requests whose host is neither an IP address,
// nor localhost, nor in names. The name of a malicious web page can resolve to 127.0.0.1,
// so that the page, in a browser on this machine, could read the answers of this server
// (DNS rebinding). The host of such a request is the host of the web page.
func OnlyHosts(names []string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		_, err := netip.ParseAddr(host)
		known := func(name string) bool { return strings.EqualFold(strings.TrimSuffix(name, "."), host) }
		if err != nil && !known("localhost") && !slices.ContainsFunc(names, known) {
			text := fmt.Sprintf("host %q is not served here: ask for an IP address or localhost, or start "+
				"`swdt stats serve` with --host", host)
			http.Error(w, text, http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// hostOf returns the host of a Host header. It removes the port, the brackets of an IPv6 address,
// and the final dot of a fully qualified name.
func hostOf(header string) string {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

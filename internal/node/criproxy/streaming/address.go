package streaming

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// longestURL is the longest URL that a runtime may name, in bytes. containerd's have 50.
const longestURL = 4 << 10

// AddressError reports a streaming URL that is not relayed. The URL comes from the node; the error's
// text has it in printable form.
type AddressError struct{ URL, Reason string }

func (e *AddressError) Error() string {
	shown := e.URL
	if len(shown) > 200 {
		shown = shown[:200] + "…"
	}
	return fmt.Sprintf("the runtime's streaming URL %q %s", ui.Printable(shown), e.Reason)
}

// target is the place on the node that a URL names.
type target struct {
	address netip.AddrPort
	path    string // with the query; begins with /
}

// parse returns the place that a runtime's URL names. Whether the address is the node's own is
// decided by the agent, since only the node knows its addresses.
func parse(text string) (target, error) {
	refused := func(reason string, values ...any) (target, error) {
		return target{}, &AddressError{URL: text, Reason: fmt.Sprintf(reason, values...)}
	}
	if len(text) > longestURL {
		return refused("is longer than %d bytes", longestURL)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return refused("has characters that a URL cannot have")
	}
	u, err := url.Parse(text)
	if err != nil {
		return refused("is not a URL")
	}
	switch {
	case u.Scheme == "https":
		return refused("is of a server with TLS, which is not relayed; use `crictl exec --sync` or `swdt hcs exec`, or " +
			"turn TLS off in the runtime's configuration (containerd: enable_tls_streaming), since SSH or the API " +
			"server's TLS protects the connection already")
	case u.Scheme != "http":
		return refused("is not of scheme http")
	case u.User != nil:
		return refused("has a user or a password")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return refused("has a fragment")
	case !strings.HasPrefix(u.EscapedPath(), "/"):
		return refused("has no path")
	}
	address, err := netip.ParseAddrPort(u.Host)
	if err != nil || address.Port() == 0 || address.Addr().Zone() != "" {
		return refused("does not have an IP address and a port; set the address of the runtime's streaming server to " +
			"127.0.0.1 (containerd: stream_server_address)")
	}
	if !mayBeOwn(address.Addr().Unmap()) {
		return refused("does not name an address of the node; set the address of the runtime's streaming server to " +
			"127.0.0.1 (containerd: stream_server_address)")
	}
	return target{address, u.RequestURI()}, nil
}

// mayBeOwn reports whether a machine can have the address. It refuses those that no machine has, and
// link-local ones, at which clouds have their metadata services.
func mayBeOwn(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}

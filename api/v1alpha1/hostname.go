package v1alpha1

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// HostPort splits a hostname of the node file into host and port: host,
// host:port, [::1]:22, ::1. The port is 0 if the hostname has none.
func HostPort(hostname string) (host string, port int, err error) {
	host, digits, err := cutPort(hostname)
	if err != nil {
		return "", 0, err
	}
	if err := checkHost(host); err != nil {
		return "", 0, err
	}
	if digits == "" {
		return host, 0, nil
	}
	port, err = parsePort(digits)
	return host, port, err
}

// cutPort splits hostname at the colon before the port. An IPv6 address contains colons
// itself, so it must be in brackets if a port follows.
func cutPort(hostname string) (host, port string, err error) {
	if rest, bracketed := strings.CutPrefix(hostname, "["); bracketed {
		host, after, closed := strings.Cut(rest, "]")
		if _, err := netip.ParseAddr(host); !closed || err != nil || !strings.Contains(host, ":") {
			return "", "", fmt.Errorf("brackets are for an IPv6 address, as in [::1]:22")
		}
		if after == "" {
			return host, "", nil
		}
		if port, ok := strings.CutPrefix(after, ":"); ok && port != "" {
			return host, port, nil
		}
		return "", "", fmt.Errorf("only a port may follow the bracket, as in [::1]:22")
	}
	switch strings.Count(hostname, ":") {
	case 0:
		return hostname, "", nil
	case 1:
		host, port, _ := strings.Cut(hostname, ":")
		if port == "" {
			return "", "", fmt.Errorf("nothing follows the colon")
		}
		return host, port, nil
	}
	if _, err := netip.ParseAddr(hostname); err != nil {
		return "", "", fmt.Errorf("it has several colons and is no IPv6 address")
	}
	return hostname, "", nil
}

func checkHost(host string) error {
	if host == "" {
		return fmt.Errorf("the host is empty")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if len(host) > 253 || strings.HasPrefix(host, "-") {
		return fmt.Errorf("it is not a host name")
	}
	for _, r := range host {
		// DNS does not allow an underscore, but a Host of ~/.ssh/config may contain one.
		if !isNameRune(r) && r != '.' && r != '-' && r != '_' {
			return fmt.Errorf("a host name cannot contain %q", r)
		}
	}
	return nil
}

func parsePort(digits string) (int, error) {
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("a port is a number from 1 to 65535")
	}
	return int(port), nil
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

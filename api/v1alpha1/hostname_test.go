package v1alpha1

import "testing"

func TestHostPort(t *testing.T) {
	tests := []struct {
		hostname, host string
		port           int
		ok             bool
	}{
		{"192.168.122.220:22", "192.168.122.220", 22, true},
		{"node", "node", 0, true},
		{"win_1.example.com:2222", "win_1.example.com", 2222, true},
		{"::1", "::1", 0, true},
		{"[::1]", "::1", 0, true},
		{"[::1]:22", "::1", 22, true},
		{"[fe80::1%eth0]:22", "fe80::1%eth0", 22, true},
		{"fe80::1%eth0", "fe80::1%eth0", 0, true},
		{"", "", 0, false},
		{":22", "", 0, false},
		{"node:", "", 0, false},
		{"node:0", "", 0, false},
		{"node:65536", "", 0, false},
		{"node:ssh", "", 0, false},
		{"node:+22", "", 0, false},
		{"a:b:c", "", 0, false},
		{"[::1", "", 0, false},
		{"[::1]22", "", 0, false},
		{"[::1]:", "", 0, false},
		{"[127.0.0.1]:22", "", 0, false},
		{"-oProxyCommand=x", "", 0, false},
		{"a b", "", 0, false},
		{"a/b", "", 0, false},
		{"me@node", "", 0, false},
	}
	for _, test := range tests {
		host, port, err := HostPort(test.hostname)
		if (err == nil) != test.ok {
			t.Errorf("HostPort(%q): error %v, want one: %t", test.hostname, err, !test.ok)
		}
		if test.ok && (host != test.host || port != test.port) {
			t.Errorf("HostPort(%q) = %q, %d; want %q, %d", test.hostname, host, port, test.host, test.port)
		}
	}
}

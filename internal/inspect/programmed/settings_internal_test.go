package programmed

import "testing"

// TestUnknownSettings checks that settings that kube-proxy did not serve are not guessed.
func TestUnknownSettings(t *testing.T) {
	for _, c := range []struct {
		line       string
		configured bool
		known      bool
	}{
		{`C:\k\kube-proxy.exe --config=C:\k\config.conf --network-name=cbr0`, false, false},
		{`C:\k\kube-proxy.exe --config C:\k\config.conf --network-name=cbr0`, true, true},
		{`C:\k\kube-proxy.exe --network-name=cbr0`, false, true},
		{`C:\k\kube-proxy.exe`, true, false},
		{`C:\k\kube-proxy.exe`, false, false},
	} {
		p := proxy{Proxy: Proxy{Configured: c.configured}, settings: fromCommandLine(c.line)}
		if err := p.known(c.line); (err == nil) != c.known {
			t.Errorf("%s, configured %t: %v", c.line, c.configured, err)
		}
	}
}

package setup

import "testing"

func TestAddressesMeanTheSame(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/255.0.0.0": "10.0.0.0/8", "10.0.0.0/8": "10.0.0.0/8", "10.1.2.3/8": "10.0.0.0/8",
		"10.0.0.1/255.255.255.255": "10.0.0.1", "10.0.0.1/32": "10.0.0.1", "10.0.0.1": "10.0.0.1",
		"fe80::/10": "fe80::/10", "0:0::1": "::1", "LocalSubnet": "localsubnet",
		"10.0.0.1-10.0.0.9": "10.0.0.1-10.0.0.9", "10.0.0.0/255.0.255.0": "10.0.0.0/255.0.255.0",
	} {
		if got := address(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestVersionsMeanTheSame(t *testing.T) {
	for _, pair := range [][2]string{{"1.2", "1.2.0"}, {"1.02.0", "1.2"}, {"v1.2", "1.2.0.0"}, {"1.2-RC1", "1.2.0-rc1"},
		{"1.2+abc", "1.2"}, {"0", "0.0"}} {
		if !sameVersion(pair[0], pair[1]) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"1.2", "1.20"}, {"1.2", "1.2-rc1"}, {"1.2", "1.2.1"}, {"10", "1"}} {
		if sameVersion(pair[0], pair[1]) {
			t.Errorf("%s and %s are the same", pair[0], pair[1])
		}
	}
}

package setup

import "testing"

func TestIsSecure(t *testing.T) {
	for sddl, want := range map[string]bool{
		authorizedKeysSDDL:                                      true,
		"O:BAG:DUD:PAI(A;;FA;;;SY)(A;;FA;;;BA)":                 true, // as Windows gives it back
		"O:SYD:P(A;;0x1f01ff;;;S-1-5-18)(A;;FA;;;S-1-5-32-544)": true,
		"O:BAD:PAI(A;;FA;;;BA)(A;;FA;;;SY)S:AI":                 true,
		"O:S-1-5-21-1-2-3-500D:PAI(A;;FA;;;BA)(A;;FA;;;SY)":     false, // somebody's own
		"O:BAD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)":                  false, // inherited: changes with the folder
		"O:BAD:PAI(A;;FA;;;BA)(A;;FA;;;SY)(A;;FR;;;AU)":         false, // others read
		"O:BAD:PAI(A;;FA;;;BA)":                                 false, // SYSTEM, who is sshd, does not
		"O:BAD:PAI(A;;FR;;;BA)(A;;FA;;;SY)":                     false,
		"O:BAD:PAI(D;;FA;;;BA)(A;;FA;;;SY)":                     false,
		"O:BAD:NO_ACCESS_CONTROL":                               false,
		"D:PAI(A;;FA;;;BA)(A;;FA;;;SY)":                         false, // no owner known
		"O:BA":                                                  false,
		"":                                                      false,
		"O:S-1-5-21-0-0-0-1000D:(A;;FA;;;SY)(A;;FA;;;S-1-5-21-0-0-0-1000)": false,
	} {
		if got := isSecure(sddl); got != want {
			t.Errorf("%s: %v, want %v", sddl, got, want)
		}
	}
}

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
	for _, pair := range [][2]string{{"1.2", "1.2.0"}, {"1.02.0", "1.2"}, {"v1.2", "1.2.0.0"}, {"1.2-RC1", "1.2.0-rc1"}, {"1.2+abc", "1.2"}, {"0", "0.0"}} {
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

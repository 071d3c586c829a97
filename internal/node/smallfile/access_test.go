package smallfile

import "testing"

func TestIsRestricted(t *testing.T) {
	for sddl, want := range map[string]bool{
		Administrators:                                          true,
		"O:BAG:DUD:PAI(A;;FA;;;SY)(A;;FA;;;BA)":                 true, // as Windows gives it back
		"O:SYD:P(A;;0x1f01ff;;;S-1-5-18)(A;;FA;;;S-1-5-32-544)": true,
		"O:BAD:PAI(A;;FA;;;BA)(A;;FA;;;SY)S:AI":                 true,
		"O:S-1-5-21-1-2-3-500D:PAI(A;;FA;;;BA)(A;;FA;;;SY)":     false, // owned by another user
		"O:BAD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)":                  false, // inherited: changes with the folder
		"O:BAD:PAI(A;;FA;;;BA)(A;;FA;;;SY)(A;;FR;;;AU)":         false, // others read
		"O:BAD:PAI(A;;FA;;;BA)":                                 false, // SYSTEM, the user of sshd, cannot read
		"O:BAD:PAI(A;;FR;;;BA)(A;;FA;;;SY)":                     false,
		"O:BAD:PAI(D;;FA;;;BA)(A;;FA;;;SY)":                     false,
		"O:BAD:NO_ACCESS_CONTROL":                               false,
		"D:PAI(A;;FA;;;BA)(A;;FA;;;SY)":                         false, // no owner known
		"O:BA":                                                  false,
		"":                                                      false,
		"O:S-1-5-21-0-0-0-1000D:(A;;FA;;;SY)(A;;FA;;;S-1-5-21-0-0-0-1000)": false,
	} {
		if got := isRestricted(sddl); got != want {
			t.Errorf("%s: %v, want %v", sddl, got, want)
		}
	}
}

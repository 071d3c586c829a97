package localfile

import "testing"

// Lists as Windows Server 2022 and Windows 11 have them. The attacker is an ordinary account of the same machine.
func TestForeignACL(t *testing.T) {
	const (
		me        = "S-1-5-21-1-2-3-1001"
		other     = "S-1-5-21-1-2-3-1002"
		mine      = "(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;FA;;;" + me + ")"
		installer = "O:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
	)
	for name, test := range map[string]struct {
		sddl   string
		folder bool
		why    string
	}{
		"the root of a server's C:": {installer + "D:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)" +
			"(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICI;0x1200a9;;;BU)", true, ""},
		"the root of a client's C:": {installer + "D:PAI(A;;LC;;;AU)(A;OICIIO;SDGXGWGR;;;AU)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)" +
			"(A;OICI;0x1200a9;;;BU)", true, ""},
		`C:\Users`:                        {"O:SYD:PAI(A;OICI;0x1200a9;;;WD)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)", true, ""},
		"your profile":                    {"O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;" + me + ")", true, ""},
		"a file in it":                    {"O:" + me + "D:AI" + mine, false, ""},
		"an administrator's file":         {"O:BAD:AI" + mine, false, ""},
		"the built-in one's file":         {"O:LAD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;FA;;;LA)", false, ""},
		"apps and stand-ins":              {"O:" + me + "D:AI" + mine + "(A;;FA;;;CO)(A;;FA;;;OW)(A;;FA;;;AC)(A;;FA;;;S-1-15-2-2)", true, ""},
		"others read":                     {"O:" + me + "D:AI" + mine + "(A;;0x1200a9;;;AU)", false, ""},
		"a folder as in C: of a client":   {"O:" + me + "D:AI" + mine + "(A;ID;0x1301bf;;;AU)(A;OICIIOID;SDGXGWGR;;;AU)", true, "can be changed by AU"},
		"a file in it, then":              {"O:" + me + "D:AI" + mine + "(A;ID;0x1301bf;;;AU)", false, "can be changed by AU"},
		`in C:\ProgramData`:               {"O:" + me + "D:AI" + mine + "(A;CIID;DCLCRPCR;;;BU)", true, ""},
		"others may write the file":       {"O:" + me + "D:AI" + mine + "(A;;DC;;;" + other + ")", false, "can be changed by " + other},
		"others may remove what is in it": {"O:" + me + "D:AI" + mine + "(A;;DT;;;IU)", true, "can be changed by IU"},
		"others may change the list":      {"O:" + me + "D:AI" + mine + "(A;;WD;;;BU)", true, "can be changed by BU"},
		"another account's":               {"O:" + other + "D:AI" + mine, true, "belongs to " + other},
		"no list":                         {"O:" + me + "D:NO_ACCESS_CONTROL", false, "can be changed by WD"},
	} {
		t.Run(name, func(t *testing.T) {
			why, err := foreignACL(test.sddl, me, test.folder, func(account string) string { return account })
			if err != nil || why != test.why {
				t.Errorf("why is %q, want %q, error %v", why, test.why, err)
			}
		})
	}
	if _, err := foreignACL("O:"+me+`D:(XA;;FA;;;WD;(Member_of{BU}))`, me, false, nil); err == nil {
		t.Error("an entry of an unknown kind is accepted")
	}
}

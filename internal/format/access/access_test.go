package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/access"
)

// Lists as Windows Server 2022 has them.
const (
	programData = "O:SYG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;0x1200a9;;;BU)" +
		"(A;CI;DCLCRPCR;;;BU)"
	windows = "O:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464D:PAI(A;OICIIO;GA;;;CO)" +
		"(A;OICIIO;GA;;;SY)(A;;0x1301bf;;;SY)(A;OICIIO;GA;;;BA)(A;;0x1301bf;;;BA)(A;OICIIO;GXGR;;;BU)(A;;0x1200a9;;;BU)"
)

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name, sddl string
		exclusive  bool
		changers   string
	}{
		{"safe folder", access.SafeFolder, true, ""},
		{"safe file", access.SafeFile, true, ""},
		{"inherited from a safe folder",
			"O:BAG:S-1-5-21-1-2-3-513D:AI(A;ID;FA;;;S-1-5-18)(A;ID;0x1f01ff;;;S-1-5-32-544)", true, ""},
		{"empty list", "O:BAD:P", true, ""},
		{"ProgramData", programData, false, "BU"},
		{"Windows", windows, false, ""},
		{"a user's", "O:S-1-5-21-1-2-3-1001D:P(A;OICI;FA;;;BA)", false, "S-1-5-21-1-2-3-1001"},
		{"readable", "O:BAD:P(A;;FA;;;BA)(A;;FR;;;BU)", false, ""},
		{"a user may change the list", "O:BAD:P(A;;FA;;;BA)(A;;WD;;;AU)", false, "AU"},
		{"inherited by what is made in it", "O:BAD:P(A;OICI;FA;;;BA)(A;OICIIO;FA;;;BU)", false, ""},
		{"denied to some", "O:BAD:P(D;;FA;;;BU)(A;;FA;;;BA)", true, ""},
		{"no list", "O:BAD:NO_ACCESS_CONTROL", false, "WD"},
		{"only an owner", "O:BA", false, "WD"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := access.Parse(test.sddl)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Exclusive(); got != test.exclusive {
				t.Errorf("exclusive: %v", got)
			}
			if got := strings.Join(l.Changers(), " "); got != test.changers {
				t.Errorf("may change it: %q", got)
			}
			again, err := access.Parse(l.String())
			switch {
			case err != nil:
				t.Errorf("written and read again: %v", err)
			case !slices.Equal(again.Entries, l.Entries):
				t.Errorf("written and read again: again.Entries is %v, want %v", again.Entries, l.Entries)
			case again.Owner != l.Owner:
				t.Errorf("written and read again: again.Owner is %v, want %v", again.Owner, l.Owner)
			}
		})
	}
}

func TestParseRefusesUnknownEntries(t *testing.T) {
	for _, sddl := range []string{
		"", "nonsense", "O:BAD:P(A;;FA;;;BA", "O:BAD:P(XA;;FX;;;BU;(@User.x==1))", "O:BAD:P(A;OIXX;FA;;;BU)",
		"O:BAD:P(A;;QQ;;;BU)", "O:BAD:(A;;FA;;;BA)x",
	} {
		if l, err := access.Parse(sddl); err == nil {
			t.Errorf("%q was read as %+v", sddl, l)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{programData, windows, access.SafeFile, "D:P", "O:BAD:AI(D;OICINPIO;0x20;;;WD)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sddl string) {
		l, err := access.Parse(sddl)
		if err != nil {
			return
		}
		if l.Exclusive() && len(l.Changers()) > 0 {
			t.Errorf("%q is exclusive, and others may change it", sddl)
		}
	})
}

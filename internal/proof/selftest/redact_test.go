package selftest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRedactor(t *testing.T) {
	t.Parallel()
	red, err := newRedactor([]string{"win", "WIN-1", "Administrator", "x", "", "a.b", "node"})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"a name, in any case":            {"owner win-1\\ADMINISTRATOR", `owner REDACTED\REDACTED`},
		"neighbours":                     {"win win win", "REDACTED REDACTED REDACTED"},
		"the longer name first":          {"WIN-1.", "REDACTED."},
		"a part of a word stays":         {"windows darwin winning", "windows darwin winning"},
		"a name of one letter stays":     {"x64 x y", "x64 x y"},
		"a word of swdt's texts stays":   {"the node has none", "the node has none"},
		"a name is no pattern":           {"a.b axb", "REDACTED axb"},
		"SID of an account":              {"S-1-5-21-1-2-3-500 S-1-5-18", "REDACTED S-1-5-18"},
		"IPv4":                           {"at 10.0.0.12:22", "at REDACTED:22"},
		"a build is no address":          {"10.0.20348.2031", "10.0.20348.2031"},
		"IPv6":                           {"fe80::1%12, [2001:db8:1:2:3:4:5:6]:22: ::1.", "REDACTED, [REDACTED]:22: REDACTED."},
		"IPv4 in IPv6":                   {"::ffff:10.0.0.1", "REDACTED"},
		"a name with colons stays":       {"std::string Microsoft::Windows", "std::string Microsoft::Windows"},
		"a time stays":                   {"at 12:30:59", "at 12:30:59"},
		"MAC":                            {"00-15-5D-01-02-03 00:15:5d:01:02:03", "REDACTED REDACTED"},
		"fingerprint":                    {"SHA256:abcDEF+/012", "REDACTED"},
		"GUID":                           {"{0F1E2D3C-0000-1111-2222-333344445555}", "{REDACTED}"},
		"profile":                        {`C:\Users\somebody\.ssh "c:\users\other"`, `REDACTED\.ssh "REDACTED"`},
		"home folders":                   {"read /home/alice/.ssh/key, /Users/bob: no", "read REDACTED/.ssh/key, REDACTED: no"},
		"who holds a lock":               {"alice@laptop.corp, swdt push changes it", "REDACTED, swdt push changes it"},
		"a machine's full name":          {"connect to win7.corp.example:22: EOF", "connect to REDACTED: EOF"},
		"what a resolver did not find":   {"dial tcp: lookup win7.corp on 10.0.0.1:53: no such host", "dial tcp: REDACTED on REDACTED:53: no such host"},
		"a path and a version stay":      {`C:\k\swdt.exe: exit 3; go1.26.0: done`, `C:\k\swdt.exe: exit 3; go1.26.0: done`},
		"empty":                          {"", ""},
		"what does not identify a node":  {"Windows Server 2022, 20348, amd64", "Windows Server 2022, 20348, amd64"},
		"bytes that are no text survive": {"\xff\x00", "\xff\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := red.text(test.text)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if again := red.text(got); again != got {
				t.Errorf("the second time it is %q", again)
			}
		})
	}
}

// TestReportIsRedactedEverywhere puts a name into each text that comes from the node and is no name of a product, and
// a secret into all of them.
func TestReportIsRedactedEverywhere(t *testing.T) {
	t.Parallel()
	const name, sid = "name-of-the-machine", "S-1-5-21-1-2-3-500"
	r := Report{CleanUp: name + " " + sid, System: System{Product: sid, Build: sid, Architecture: sid, OpenSSH: sid},
		Claims: []Result{{Reason: name + " " + sid, Answers: []Answer{{Key: "owner", Value: "of " + name + " " + sid}}}}}
	r.redact([]string{name})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), name) || strings.Contains(string(text), sid) {
		t.Errorf("the name or the SID is in %s", text)
	}
	if got := strings.Count(string(text), "REDACTED"); got != 4+2*3 {
		t.Errorf("%d texts are redacted, want 10: %s", got, text)
	}
}

// TestNodeNamedAsAProduct holds that the name of a node hides nothing of its system.
func TestNodeNamedAsAProduct(t *testing.T) {
	t.Parallel()
	system := System{Product: "Windows Server 2022", Build: "20348.2849", Architecture: "amd64",
		OpenSSH: "OpenSSH_for_Windows_9.5"}
	r := Report{System: system, CleanUp: "remove from windows"}
	r.redact([]string{"windows", "Server", "20348", "amd64", "2022", "OpenSSH_for_Windows_9.5"})
	if diff := cmp.Diff(system, r.System); diff != "" {
		t.Errorf("the system is redacted (-want +got):\n%s", diff)
	}
	if r.CleanUp != "remove from REDACTED" {
		t.Errorf("the clean-up is %q", r.CleanUp)
	}
}

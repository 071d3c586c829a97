package ssh_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/node/ssh"
)

// The hints of a rejected key depend on the version of Windows' sshd and on the account. Server 2019, 2022 and 2025
// come with 7.7, 8.1 and 9.5.
func TestHintsOfARejectedKey(t *testing.T) {
	tests := []struct {
		name            string
		err             ssh.AuthError
		english, domain bool
	}{
		{"7.7", ssh.AuthError{Server: "SSH-2.0-OpenSSH_for_Windows_7.7", User: "Administrator"}, true, false},
		{"8.1", ssh.AuthError{Server: "SSH-2.0-OpenSSH_for_Windows_8.1", User: "Administrator"}, true, false},
		{"8.6", ssh.AuthError{Server: "SSH-2.0-OpenSSH_for_Windows_8.6", User: "Administrator"}, false, false},
		{"9.5", ssh.AuthError{Server: "SSH-2.0-OpenSSH_for_Windows_9.5 Win32-OpenSSH-GitHub", User: "Administrator"}, false, false},
		{"10.0", ssh.AuthError{Server: "SSH-2.0-OpenSSH_for_Windows_10.0", User: "Administrator"}, false, false},
		{"not Windows", ssh.AuthError{Server: "SSH-2.0-OpenSSH_7.4", User: "root"}, false, false},
		{"unknown", ssh.AuthError{User: "root"}, false, false},
		{"a domain", ssh.AuthError{Server: "SSH-2.0-OpenSSH_for_Windows_9.5", User: `CORP\admin`}, false, true},
		{"a domain's name", ssh.AuthError{Server: "SSH-2.0-OpenSSH_for_Windows_9.5", User: "admin@corp.example"}, false, true},
	}
	for _, test := range tests {
		test.err.Tried = []string{"publickey (id_ed25519)"}
		hasHints(t, test.name, &test.err, test.english, test.domain)
		test.err.Tried, test.err.Passwords = []string{"password"}, 1
		hasHints(t, test.name+" with a password", &test.err, false, false)
	}
}

func hasHints(t *testing.T, name string, err error, english, domain bool) {
	t.Helper()
	if got := strings.Contains(err.Error(), "local name"); got != english {
		t.Errorf("%s: the hint at the group's name: %v, want %v: %v", name, got, english, err)
	}
	if got := strings.Contains(err.Error(), "domain controller"); got != domain {
		t.Errorf("%s: the hint at the domain: %v, want %v: %v", name, got, domain, err)
	}
}

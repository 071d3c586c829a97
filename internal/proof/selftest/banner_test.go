package selftest

import "testing"

func TestOpenSSH(t *testing.T) {
	t.Parallel()
	for banner, want := range map[string]string{
		"SSH-2.0-OpenSSH_for_Windows_9.5":        "OpenSSH_for_Windows_9.5",
		"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7": "OpenSSH_9.2p1",
		"SSH-2.0-Go":                             "",
		"":                                       "",
		"SSH-2.0-OpenSSH_for_Windows_9.5 of WIN-42": "OpenSSH_for_Windows_9.5",
	} {
		if got := openSSH(banner); got != want {
			t.Errorf("the version in %q is %q, want %q", banner, got, want)
		}
	}
}

// TestVaryingAnswers holds the exceptions to the answers that they are for.
func TestVaryingAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		standIn, claim, key, here, there string
		want                             bool
	}{
		{"wine", "running", removalDenied, "false", "true", true},
		{"wine", "running", removalInUse, "true", "false", true},
		{"wine", "running", removalInUse, none, "true", false},
		{"wine", "running", "outcome", "true", "false", false},
		{"wine", "files", removalInUse, "true", "false", false},
		{"simulated", "running", removalInUse, "true", "false", false},
		{"wine", "guardian", versionAfterRestart, "v1", "v2", true},
		{"wine", "guardian", versionAfterRestart, none, "v2", false},
		{"simulated", "guardian", versionAfterRestart, "v1", "v2", false},
		{"simulated", "events", hasEvents, "true", "false", true},
		{"simulated", "events", hasEvents, none, "false", false},
		{"wine", "events", hasEvents, "true", "false", false},
	} {
		if got := varies(test.standIn, Difference{Claim: test.claim, Key: test.key, Here: test.here, There: test.there}); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidateWhatSetupRestores(t *testing.T) {
	number, text, nul, off := uint32(1), "text", "a\x00b", false
	n := validNode()
	n.Spec.Setup = Setup{
		Registry: []RegistryValue{
			{Key: `HKLM\SYSTEM\CurrentControlSet\Services\hns\State`, Name: "EnableCompartmentNamespace", DWord: &number},
			{Key: `hklm\SOFTWARE\A b`, Name: "C d", String: &text},
		},
		AutomaticUpdates: &off,
		Defender:         Defender{ExcludePaths: []string{`C:\a b`, `%ProgramData%\*`}, ExcludeProcesses: []string{"containerd.exe"}},
	}
	n.Spec.Kubernetes.CertificateAuthorities = []string{"~/ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}
	if got := problemsOf(n); got != nil {
		t.Errorf("a good file has problems:\n%s", strings.Join(got, "\n"))
	}

	n.Spec.Setup = Setup{
		Registry: []RegistryValue{
			{Key: `HKCU\Software\A`, Name: "a", DWord: &number}, {Key: `HKLM\SOFTWARE`, Name: "a", DWord: &number},
			{Key: `HKLM\SOFTWARE\A\`, Name: "a", DWord: &number}, {Key: `HKLM\SOFTWARE\A`, DWord: &number},
			{Key: `HKLM\SOFTWARE\A`, Name: "b"}, {Key: `HKLM\SOFTWARE\A`, Name: "c", DWord: &number, String: &text},
			{Key: `HKLM\SOFTWARE\A`, Name: "B", String: &nul}, {Key: UpdatePolicyKey, Name: "AUOptions", DWord: &number},
		},
		AutomaticUpdates: &off,
		Defender:         Defender{ExcludePaths: []string{"", "a\nb", `C:\a`, `c:\A`}},
	}
	n.Spec.Kubernetes.CertificateAuthorities = []string{" ", "-----BEGIN PRIVATE KEY-----", "a\nb", "ca.pem", "ca.pem"}
	want := []string{
		`spec.setup.registry[0].key: "HKCU\\Software\\A" is not a key below HKLM`,
		`spec.setup.registry[1].key: "HKLM\\SOFTWARE" is not a key below HKLM`,
		`spec.setup.registry[2].key: "HKLM\\SOFTWARE\\A\\" is not a key below HKLM`,
		`spec.setup.registry[3].name: is missing`,
		`spec.setup.registry[4]: has neither dword nor string`,
		`spec.setup.registry[5].string: is set beside dword`,
		`spec.setup.registry[6].name: HKLM\SOFTWARE\A\B is there already, as spec.setup.registry[4].name`,
		`spec.setup.registry[6].string: has a null character`,
		`spec.setup.registry[7].name: belongs to automaticUpdates, which is set too`,
		`spec.setup.defender.excludePaths[0]: is empty`,
		`spec.setup.defender.excludePaths[1]: "a\nb" is not a path`,
		`spec.setup.defender.excludePaths[3]: c:\A is there already, as spec.setup.defender.excludePaths[2]`,
		`certificateAuthorities[0]: is empty`,
		`certificateAuthorities[1]: has a private key`,
		`certificateAuthorities[2]: is neither a certificate nor a path`,
		`certificateAuthorities[4]: ca.pem is there already, as spec.kubernetes.certificateAuthorities[3]`,
	}
	if diff := cmp.Diff(want, problemsOf(n)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestValidateNodeIP(t *testing.T) {
	for nodeIP, wrong := range map[string]bool{
		"10.0.0.1": false, "fd00::1": false, "10.0.0.1,fd00::1": false, "fd00::1,10.0.0.1": false,
		"10.0.0.1,": true, "10.0.0.1,10.0.0.2": true, "10.0.0.1,fd00::1,fd00::2": true, "10.0.0.1, fd00::1": true, "::": false,
	} {
		n := validNode()
		n.Spec.Kubernetes.Join.NodeIP = nodeIP
		if got := problemsOf(n); (got != nil) != wrong {
			t.Errorf("%s: %q", nodeIP, got)
		}
	}
}

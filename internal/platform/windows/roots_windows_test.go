package windows

import (
	"crypto/x509"
	"encoding/base64"
	"os"
	"os/exec"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform/platformtest"
)

// containerd and kubelet are Go programs without roots of their own, so Windows verifies their servers by the store of
// the machine (crypto/x509, root_windows.go). Under Wine, a process that has verified a certificate before does not see
// the change, so each look is a new process.
func TestGoProgramsTrustAddedRoots(t *testing.T) {
	const variable = "SWDT_TEST_ROOT"
	if text := os.Getenv(variable); text != "" {
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Verify(x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Fatal(err)
		}
		return
	}
	der := platformtest.Authority(t, "of Go programs")
	trusts := func() bool {
		cmd := exec.CommandContext(t.Context(), executable(t), "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"="+base64.StdEncoding.EncodeToString(der))
		return cmd.Run() == nil
	}
	if trusts() {
		t.Fatal("it is trusted before it was added")
	}
	if err := (roots{}).Add(der); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roots{}.Remove(der) })
	if !trusts() {
		t.Error("it is not trusted after it was added")
	}
	if err := (roots{}).Remove(der); err != nil {
		t.Fatal(err)
	}
	if trusts() {
		t.Error("it is trusted after it was removed")
	}
}

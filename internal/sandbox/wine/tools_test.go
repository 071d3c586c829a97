package wine

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// An enabled feature takes effect with the next boot.
func TestDISMKeepsFeatures(t *testing.T) {
	p := prepared(t)
	_, stop, err := p.Keep(t.Context()) // one boot
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	dism := func(args ...string) (string, int) {
		out, err := p.Command(t.Context(), "dism", append([]string{"/Online", "/English"}, args...)...).Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		code := 0
		if exit != nil {
			code = exit.ExitCode()
		}
		return string(out), code
	}
	state := func(want string) {
		t.Helper()
		if out, _ := dism("/Get-FeatureInfo", "/FeatureName:containers"); !strings.Contains(out,
			"State : "+want+"\r\n") {
			t.Errorf("state: %q, want %s", out, want)
		}
	}
	state("Disabled")
	// The exit code of a Wine process is 3010 cut to its low byte.
	if _, code := dism("/Enable-Feature", "/FeatureName:Containers", "/All", "/NoRestart"); code != 3010&0xff {
		t.Errorf("enabling ends with %d", code)
	}
	state("Enable Pending")
	if _, code := dism("/Enable-Feature", "/FeatureName:Containers"); code != 0 {
		t.Errorf("enabling again ends with %d", code)
	}
	if out, code := dism("/Get-FeatureInfo", "/FeatureName:TelnetClient"); code == 0 {
		t.Errorf("a feature that is not there: %q", out)
	}
	if err := p.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	state("Enabled")
}

// netsh stores a firewall rule in the same registry key as Windows, and can delete it by its name.
func TestNetshKeepsFirewallRules(t *testing.T) {
	p := prepared(t)
	const key = `HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules`
	netsh := func(args ...string) error {
		return p.Command(t.Context(), "netsh", append([]string{"advfirewall", "firewall"}, args...)...).Run()
	}
	if err := netsh("add", "rule", "name=kubelet (swdt)", "dir=in", "action=allow", "enable=yes", "profile=any",
		"protocol=tcp", "localport=10250"); err != nil {
		t.Fatal(err)
	}
	const rule = "v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|Name=kubelet (swdt)|"
	if got := output(t, p.Command(t.Context(), "reg", "query", key)); !strings.Contains(got, rule) {
		t.Errorf("rules: %s", got)
	}
	if err := netsh("delete", "rule", "name=kubelet"); err == nil {
		t.Error("a rule that is not there was deleted")
	}
	if err := netsh("delete", "rule", "name=kubelet (swdt)"); err != nil {
		t.Error(err)
	}
	if got := output(t, p.Command(t.Context(), "reg", "query", key)); strings.Contains(got, "kubelet") {
		t.Errorf("rules: %s", got)
	}
	if err := netsh("reset"); err == nil {
		t.Error("a command that is not known pretends to have worked")
	}
}

package setup_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const aKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8uWE2ss3Wc1WQ2M5oHkV1eR0uQTYcTkBzW5cQe3l3J dev@laptop"

func whole() v1alpha1.Setup {
	on := true
	return v1alpha1.Setup{
		EnableRDP:     &on,
		ChocoPackages: []string{"vim", "grep", "Git@2.40.0"},
		Features:      []string{"Containers"},
		Hosts: []v1alpha1.HostsEntry{{Address: "192.168.122.10",
			Names: []string{"control-plane", "api.local"}}},
		Environment: map[string]string{"CONTAINERD_LOG": "debug"},
		Path:        []string{`C:\k`, `C:\Program Files\containerd\bin`},
		Firewall: []v1alpha1.FirewallRule{
			{Name: "kubelet", Ports: "10250"},
			{Name: "vxlan", Protocol: "udp", Ports: "4789", Addresses: "192.168.122.0/24", Profiles: "domain,private"},
		},
		OpenSSH: &v1alpha1.OpenSSH{AuthorizedKeys: []string{aKey}},
	}
}

func TestWholeSetupThenNothingToDo(t *testing.T) {
	lab := newLab(t, simulated.Options{Internet: true})
	results, err := lab.setup(whole(), plan.Options{AllowReboot: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.State != plan.Changed && result.State != plan.OK {
			t.Errorf("%s: %s %s", result.Name, result.State, result.Message)
		}
	}
	switch got := states(results); {
	case got["Chocolatey"] != plan.Changed:
		t.Errorf(`states: got["Chocolatey"] is %v, want %v`, got["Chocolatey"], plan.Changed)
	case got["package vim"] != plan.Changed:
		t.Errorf(`states: got["package vim"] is %v, want %v`, got["package vim"], plan.Changed)
	case got["SSH keys"] != plan.Changed:
		t.Errorf(`states: got["SSH keys"] is %v, want %v`, got["SSH keys"], plan.Changed)
	}
	wanted := map[string]string{"chocolatey": "2.3.0", "vim": "9.1.821", "grep": "3.11.0", "git": "2.40.0"}
	if diff := cmp.Diff(wanted, lab.machine.Packages()); diff != "" {
		t.Errorf("packages: %s", diff)
	}

	operations := lab.changes(func() {
		results, err = lab.setup(whole(), plan.Options{AllowReboot: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.State != plan.OK || result.Change != "" {
			t.Errorf("second run, %s: %s %s %s", result.Name, result.State, result.Change, result.Message)
		}
	}
	for _, operation := range operations {
		// Querying Chocolatey runs it.
		if operation.Kind != simulated.OpProcessRun {
			t.Errorf("the second run changed something: %s", operation)
		}
	}
}

// A service inherits the variables that services.exe got at boot (Microsoft's KB 821761), also after its restart.
func TestAChangedVariableReachesServicesLater(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	spec := v1alpha1.Setup{Environment: map[string]string{"CONTAINERD_LOG": "debug"}}
	for _, want := range []string{"services have it after the next reboot", ""} {
		results, err := lab.setup(spec, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(results, func(r plan.StepResult) bool { return r.Name == "environment" })
		if results[i].Message != want {
			t.Errorf("the step's message is %q, want %q", results[i].Message, want)
		}
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	lab := newLab(t, simulated.Options{Preset: simulated.Minimal})
	operations := lab.changes(func() {
		results, err := lab.setup(whole(), plan.Options{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			if result.State != plan.OK && (result.State != plan.Skipped || result.Change == "") {
				t.Errorf("%s: %s %q", result.Name, result.State, result.Change)
			}
		}
	})
	if len(operations) > 0 {
		t.Errorf("changed: %v", operations)
	}
}

func TestRemoteDesktop(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	for _, on := range []bool{true, false, true} {
		if _, err := lab.setup(v1alpha1.Setup{EnableRDP: &on}, plan.Options{}); err != nil {
			t.Fatal(err)
		}
		p := lab.machine.Process("test")
		value, err := p.Registry.Get(`HKLM\SYSTEM\CurrentControlSet\Control\Terminal Server`, "fDenyTSConnections")
		if err != nil || (value.Integer == 0) != on {
			t.Errorf("on %v: fDenyTSConnections %d, %v", on, value.Integer, err)
		}
		rules, err := p.Firewall.Rules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, rule := range rules {
			if rule.Group == "@FirewallAPI.dll,-28752" {
				found++
				if rule.Enabled != on {
					t.Errorf("on %v: rule %s is enabled: %v", on, rule.Name, rule.Enabled)
				}
			}
		}
		if found == 0 {
			t.Error("the machine has no rules for Remote Desktop")
		}
		if status, err := p.Services.Status(t.Context(), "TermService"); err != nil ||
			on && status.State != platform.Running {
			t.Errorf("on %v: TermService is %s, %v", on, status.State, err)
		}
	}
}

func TestRemoteDesktopEnablesADisabledService(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	p := lab.machine.Process("test")
	if status, err := p.Services.Status(t.Context(), "TermService"); err != nil {
		t.Fatal(err)
	} else if status.State == platform.Running {
		if err := p.Services.Stop(t.Context(), "TermService"); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Services.Configure(t.Context(), platform.ServiceConfig{Name: "TermService",
		StartType: platform.StartDisabled}); err != nil {
		t.Fatal(err)
	}
	on := true
	if _, err := lab.setup(v1alpha1.Setup{EnableRDP: &on}, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Services.Status(t.Context(), "TermService"); err != nil || status.State != platform.Running {
		t.Errorf("TermService is %s, %v", status.State, err)
	}
}

func TestFeatureWithoutLeaveToReboot(t *testing.T) {
	lab := newLab(t, simulated.Options{Preset: simulated.Minimal})
	spec := v1alpha1.Setup{Features: []string{"Containers"}, Path: []string{`C:\k`}}
	for run := range 2 {
		results, err := lab.setup(spec, plan.Options{})
		var reboot *plan.RebootRequiredError
		if !errors.As(err, &reboot) || !strings.Contains(err.Error(), "--allow-reboot") {
			t.Fatalf("run %d: %v", run, err)
		}
		if got := states(results)["features"]; got != plan.RebootRequired {
			t.Errorf("run %d: %s", run, got)
		}
		if got := states(results)["PATH"]; got != plan.Changed && got != plan.OK {
			t.Errorf("run %d: what needs no reboot is %s", run, got)
		}
	}
	results, err := lab.setup(spec, plan.Options{AllowReboot: true})
	if err != nil || states(results)["features"] != plan.Changed {
		t.Fatalf("with leave: %v, %v", results, err)
	}
}

func TestUnknownFeatureChangesNothing(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	operations := lab.changes(func() {
		_, err := lab.setup(v1alpha1.Setup{Path: []string{`C:\new`}, Features: []string{"Conteiners"}}, plan.Options{})
		switch {
		case !errors.Is(err, fault.ErrNotExist):
			t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
		case !strings.Contains(err.Error(), "Conteiners"):
			t.Errorf("err.Error() lacks %q:\n%s", "Conteiners", err.Error())
		}
	})
	if len(operations) > 0 {
		t.Errorf("changed: %v", operations)
	}
}

func TestChocolateyWithoutInternet(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	results, err := lab.setup(v1alpha1.Setup{ChocoPackages: []string{"vim"}, Path: []string{`C:\new`}}, plan.Options{})
	var failed *command.FailedError
	switch {
	case !errors.As(err, &failed):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, failed)
	case !strings.Contains(failed.Stderr, "could not be resolved"):
		t.Fatalf("failed.Stderr lacks %q:\n%s", "could not be resolved", failed.Stderr)
	}
	if _, ok := errors.AsType[*setup.DownloadError](err); !ok {
		t.Errorf("the error does not say that a download failed: %v", err)
	}
	for _, want := range []string{"https://community.chocolatey.org/install.ps1", "internet", "proxy",
		"chocoPackages"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	want := map[string]plan.State{"PATH": plan.Changed, "Chocolatey": plan.Failed, "package vim": plan.Skipped}
	if diff := cmp.Diff(want, states(results)); diff != "" {
		t.Errorf(`diff is %q, want ""`, diff)
	}
}

func TestPackageVersionIsChanged(t *testing.T) {
	lab := newLab(t, simulated.Options{Internet: true})
	for _, version := range []string{"1.5.0", "1.7.0", "1.6.0"} {
		if _, err := lab.setup(v1alpha1.Setup{ChocoPackages: []string{"JQ@" + version}}, plan.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := lab.machine.Packages()["jq"]; got != version {
			t.Errorf("installed %s, wanted %s", got, version)
		}
	}
}

func TestSSHKeysKeepWhatStandsThere(t *testing.T) {
	const file = `C:\ProgramData\ssh\administrators_authorized_keys`
	const foreign = "# mine\r\n\r\nssh-ed25519 " +
		"AAAAC3NzaC1lZDI1NTE5AAAAIGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1 other"
	lab := newLab(t, simulated.Options{})
	p := lab.machine.Process("test")
	if err := p.Files.MakeFolder(`C:\ProgramData\ssh`); err != nil {
		t.Fatal(err)
	}
	lab.machine.WriteFile(file, []byte(foreign))

	// The same key twice, the second time with options and another comment.
	spec := v1alpha1.Setup{OpenSSH: &v1alpha1.OpenSSH{AuthorizedKeys: []string{aKey,
		strings.Replace(aKey, "dev@laptop", "twice", 1)}}}
	if _, err := lab.setup(spec, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	got, err := lab.machine.ReadFile(file)
	if want := foreign + "\r\n" + aKey + "\r\n"; err != nil || string(got) != want {
		t.Errorf("got %q, want %q, %v", got, want, err)
	}
	switch sddl, err := p.Files.ACL(file); {
	case err != nil:
		t.Error(err)
	case strings.Contains(sddl, "AU"):
		t.Errorf("sddl contains %q:\n%s", "AU", sddl)
	case !strings.Contains(sddl, "BA"):
		t.Errorf("sddl lacks %q:\n%s", "BA", sddl)
	}

	// Only the access list is wrong: the content stays unchanged.
	if err := p.Files.SetACL(file, "O:BAD:P(A;;FA;;;BA)(A;;FA;;;SY)(A;;FR;;;AU)"); err != nil {
		t.Fatal(err)
	}
	operations := lab.changes(func() {
		if _, err := lab.setup(spec, plan.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	if slices.ContainsFunc(operations, func(o simulated.Operation) bool {
		return o.Kind == simulated.OpWrite && o.Target == file
	}) {
		t.Errorf("the file was written: %v", operations)
	}
	if sddl, err := p.Files.ACL(file); err != nil || strings.Contains(sddl, "AU") {
		t.Errorf("access list %s, %v", sddl, err)
	}
}

// utf16 returns aKey as the content of a file in an encoding.
func utf16(encoding windowstext.Encoding) string {
	return string(windowstext.Text{Encoding: encoding}.Encode(aKey + "\r\n"))
}

// A local .pub may have any encoding that Windows' tools write.
func TestPublicKeyFilesOfWindowsTools(t *testing.T) {
	const file = `C:\ProgramData\ssh\administrators_authorized_keys`
	for name, content := range map[string]string{
		"UTF-16 of PowerShell 5.1 (MicrosoftDocs/windowsserverdocs#6748)": utf16(windowstext.UTF16LE),
		"UTF-16 without a mark":                   utf16(windowstext.UnmarkedUTF16LE),
		"UTF-8 with a mark":                       "\ufeff" + aKey + "\r\n",
		"CR CR LF (PowerShell/Win32-OpenSSH#862)": "# mine\r\r\n" + aKey + "\r\r\n",
		"CR":       "# mine\r" + aKey + "\r",
		"NUL tail": aKey + "\n\x00\x00",
	} {
		lab := newLab(t, simulated.Options{})
		path := filepath.Join(t.TempDir(), "key.pub")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := lab.setup(v1alpha1.Setup{OpenSSH: &v1alpha1.OpenSSH{AuthorizedKeys: []string{path}}}, plan.Options{})
		if got, _ := lab.machine.ReadFile(file); err != nil || string(got) != aKey+"\n" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	path := filepath.Join(t.TempDir(), "key.pub")
	if err := os.WriteFile(path, []byte("# B\xfcro\n"+aKey), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := newLab(t, simulated.Options{}).setup(v1alpha1.Setup{OpenSSH: &v1alpha1.OpenSSH{
		AuthorizedKeys: []string{path}}}, plan.Options{})
	if unread, ok := errors.AsType[*windowstext.Error](err); !ok || unread.Line != 1 {
		t.Errorf("a code page: %v", err)
	}
}

// sshd reads UTF-8 alone, and skips a mark.
func TestAuthorizedKeysOfWindowsTools(t *testing.T) {
	const file = `C:\ProgramData\ssh\administrators_authorized_keys`
	spec := v1alpha1.Setup{OpenSSH: &v1alpha1.OpenSSH{AuthorizedKeys: []string{aKey}}}
	for _, content := range []string{"\ufeff" + aKey + "\r\n", aKey + "\r\r\n", "# mine\n" + aKey} {
		lab := newLab(t, simulated.Options{})
		lab.machine.WriteFile(file, []byte(content))
		_, err := lab.setup(spec, plan.Options{})
		if got, _ := lab.machine.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("%q became %q, %v", content, got, err)
		}
	}
	for _, content := range []string{utf16(windowstext.UTF16LE), utf16(windowstext.UnmarkedUTF16LE)} { // PowerShell/Win32-OpenSSH#2070, #2254
		lab := newLab(t, simulated.Options{})
		lab.machine.WriteFile(file, []byte(content))
		_, err := lab.setup(spec, plan.Options{})
		if _, ok := errors.AsType[*windowstext.Error](err); !ok {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestFirewallRuleIsMadeEqual(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	p := lab.machine.Process("test")
	rule := v1alpha1.FirewallRule{Name: "kubelet", Ports: "10250", Addresses: "10.0.0.0/8"}
	for name, existing := range map[string]platform.FirewallRule{
		"disabled": {Name: "kubelet", Inbound: true, Allow: true, Protocol: "tcp", Ports: "10250",
			Profiles: "any", Addresses: "10.0.0.0/8"},
		"other port": {Name: "Kubelet", Enabled: true, Inbound: true, Allow: true, Protocol: "tcp", Ports: "1",
			Profiles: "any", Addresses: "10.0.0.0/8"},
		"one program's": {Name: "kubelet", Enabled: true, Inbound: true, Allow: true, Protocol: "tcp", Ports: "10250",
			Profiles: "any", Addresses: "10.0.0.0/8", Program: `C:\k\kubelet.exe`},
		"some profiles'": {Name: "kubelet", Enabled: true, Inbound: true, Allow: true, Protocol: "tcp", Ports: "10250",
			Profiles: "domain", Addresses: "10.0.0.0/8"},
	} {
		if err := p.Firewall.Add(t.Context(), existing); err != nil {
			t.Fatal(err)
		}
		results, err := lab.setup(v1alpha1.Setup{Firewall: []v1alpha1.FirewallRule{rule}}, plan.Options{})
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case results[0].State != plan.Changed:
			t.Errorf("%s: results[0].State is %v, want %v", name, results[0].State, plan.Changed)
		}
	}
	// The same rule as Windows spells it.
	same := platform.FirewallRule{
		Name: "kubelet", Enabled: true, Inbound: true, Allow: true, Protocol: "6", Ports: "10250",
		Profiles: "public,domain,private", Addresses: "10.0.0.0/255.0.0.0",
	}
	if err := p.Firewall.Add(t.Context(), same); err != nil {
		t.Fatal(err)
	}
	results, err := lab.setup(v1alpha1.Setup{Firewall: []v1alpha1.FirewallRule{rule}}, plan.Options{})
	if err != nil || results[0].State != plan.OK {
		t.Errorf("the same in other words: %v, %v", results, err)
	}
}

// Chocolatey before 2.0 lists all published packages unless an option prevents that.
func TestOlderChocolatey(t *testing.T) {
	lab := newLab(t, simulated.Options{})
	lab.machine.WriteFile(`C:\ProgramData\chocolatey\bin\choco.exe`,
		simulated.Binary(simulated.BinarySpec{Name: "choco", Version: "1.4.0"}))
	lab.machine.Script(func(c platform.Command) (simulated.Answer, bool) {
		if !strings.HasSuffix(c.Path, "choco.exe") {
			return simulated.Answer{}, false
		}
		switch {
		case slices.Equal(c.Args, []string{"--version"}):
			return simulated.Answer{Stdout: "1.4.0\r\n"}, true
		case slices.Equal(c.Args, []string{"list", "--limit-output", "--local-only"}):
			return simulated.Answer{Stdout: "chocolatey|1.4.0\r\nVim|9.0.0\r\n"}, true
		}
		return simulated.Answer{ExitCode: 3010, Stdout: "installed\r\n"}, true
	})
	results, err := lab.setup(v1alpha1.Setup{ChocoPackages: []string{"vim", "vim@9", "grep"}}, plan.Options{})
	var reboot *plan.RebootRequiredError
	switch {
	case !errors.As(err, &reboot):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, reboot)
	case !slices.Equal(reboot.Steps, []string{"package grep"}):
		t.Fatalf("reboot.Steps is %v, want %v", reboot.Steps, []string{"package grep"})
	}
	switch {
	case results[1].State != plan.OK:
		t.Errorf("results[1].State is %v, want %v", results[1].State, plan.OK)
	case results[2].State != plan.OK:
		t.Errorf("results[2].State is %v, want %v", results[2].State, plan.OK)
	case results[3].State != plan.RebootRequired:
		t.Errorf("results[3].State is %v, want %v", results[3].State, plan.RebootRequired)
	}
}

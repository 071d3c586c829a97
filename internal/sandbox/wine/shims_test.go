package wine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The PowerShell shim answers the queries of kubeadm's system verification, and fails for every
// other command instead of pretending success.
func TestPowerShellAnswersKubeadm(t *testing.T) {
	p := prepared(t)
	const properties = `Get-ItemProperty -Path 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'`
	for script, want := range map[string]string{
		"(" + properties + ").ProductName": "Windows Server 2022 Datacenter",
		"$props = " + properties + `; "$($props.CurrentMajorVersionNumber).` +
			`$($props.CurrentMinorVersionNumber).$($props.CurrentBuildNumber)"`: "10.0.20348",
	} {
		if got := output(t, p.Command(t.Context(), "powershell", script)); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	for _, args := range [][]string{{"-Command", "Get-Service"}, {"Get-Service"}, nil} {
		if out, err := p.Command(t.Context(), "powershell", args...).CombinedOutput(); err == nil {
			t.Errorf("powershell %q succeeded: %s", args, out)
		}
	}
}

// HNS returns the objects whose files exist in the prefix, at first none, to clients of both of its
// DLLs.
func TestHNSAnswersWithTheFilesInThePrefix(t *testing.T) {
	p := prepared(t)
	exe := `C:\hnsask.exe`
	local, err := p.Path(exe)
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", local, "./testdata/hnsask")
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build hnsask: %v\n%s", err, out)
	}
	ask := func(args ...string) string { return output(t, p.Command(t.Context(), exe, args...)) }

	if got := ask("GET", "/endpoints/"); got != `{"Success":true,"Output":[]}` {
		t.Errorf("endpoints at first: %s", got)
	}
	if got := ask("networks"); got != "[]" {
		t.Errorf("networks at first: %s", got)
	}
	const id = "11111111-AAAA-2222-BBBB-333333333333"
	plant(t, p, "networks", id, `{"ID":"`+id+`","Name":"Calico"}`)
	plant(t, p, "endpointstats", id, `{"BytesSent":7}`)
	if got := ask("networks"); got != `["`+id+`"]` {
		t.Errorf("networks: %s", got)
	}
	if got := ask("network", id); got != `{"ID":"`+id+`","Name":"Calico"}` {
		t.Errorf("the network: %s", got)
	}
	if got := ask("GET", "/networks/"); got != `{"Success":true,"Output":[{"ID":"`+id+`","Name":"Calico"}]}` {
		t.Errorf("networks: %s", got)
	}
	if got := ask("GET", "/endpointstats/"+id); got != `{"Success":true,"Output":{"BytesSent":7}}` {
		t.Errorf("statistics: %s", got)
	}
	for _, request := range [][]string{{"GET", "/endpoints/none"}, {"POST", "/networks/"}, {"GET", `/../secret`}} {
		if got := ask(request...); !strings.Contains(got, `"Success":false`) {
			t.Errorf("%q: got lacks %q:\n%s", request, `"Success":false`, got)
		}
	}
}

func plant(t *testing.T, p *Prefix, kind, id, object string) {
	t.Helper()
	folder, err := p.Path(`C:\ProgramData\swdt-hns\` + kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, id+".json"), []byte(object), 0o644); err != nil {
		t.Fatal(err)
	}
}

package windows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
)

// The test binary acts as netsh.exe and dism.exe, to check what they receive
// through a real command line.
func TestToolsAreCalledThroughRealCommandLines(t *testing.T) {
	folder := tempFolder(t)
	record := filepath.Join(folder, "calls")
	t.Setenv("SWDT_TEST_TOOL", record)
	f := firewall{netsh: executable(t), processes: processes{}, registry: registryKeys{}}
	err := f.Add(t.Context(), platform.FirewallRule{Name: `kube "let" ü`, Protocol: "tcp", Ports: "1"})
	if err == nil {
		t.Error("a quotation mark in a rule's name was taken")
	}
	if err := f.Add(t.Context(), platform.FirewallRule{Name: `kubelet (ü) 100%`, Protocol: "tcp", Ports: "1",
		Program: `C:\Program Files\x\x.exe`}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record+".answer", []byte(`{"Output": "State : Enable Pending\r\n", "ExitCode": 0}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	state, err := features{dism: executable(t), processes: processes{}}.State(t.Context(), "Containers")
	switch {
	case err != nil:
		t.Error(err)
	case state != platform.FeatureEnablePending:
		t.Errorf("state is %v, want %v", state, platform.FeatureEnablePending)
	}
	if err := os.WriteFile(record+".answer", []byte(`{"ExitCode": 3010}`), 0o644); err != nil {
		t.Fatal(err)
	}
	switch reboot, err := (features{dism: executable(t), processes: processes{}}).Enable(t.Context(),
		"Containers"); {
	case err != nil:
		t.Error(err)
	case !reboot:
		t.Error("reboot is false, want true")
	}
	want := `["advfirewall","firewall","add","rule","name=kubelet (ü) 100%","dir=out","action=block",` +
		`"enable=no","profile=any","protocol=tcp","localport=1","program=C:\\Program Files\\x\\x.exe"]
["/Online","/English","/Get-FeatureInfo","/FeatureName:Containers"]
["/Online","/English","/Enable-Feature","/FeatureName:Containers","/All","/NoRestart"]`
	if got := strings.TrimSpace(read(t, record)); got != want {
		t.Errorf("calls\n%s\nwant\n%s", got, want)
	}
}

package logs_test

import (
	"slices"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

// nssm writes what its program prints, and the program has a log folder of its own: both are logs of the
// service, once each (kubernetes-sigs/sig-windows-tools kubeadm/scripts/PrepareNode.ps1).
func TestLogsOfAServiceUnderNSSM(t *testing.T) {
	n := startNode(t)
	if _, err := n.Services.Create(t.Context(),
		&agentv1.ServiceConfig{Name: "kubelet", CommandLine: `C:\k\nssm.exe`}); err != nil {
		t.Fatal(err)
	}
	const key = `HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`
	if _, err := n.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{Key: key, Value: &agentv1.RegistryValue{
		Name: "AppEnvironmentExtra", Type: "REG_MULTI_SZ", Strings: []string{`LOGS=E:\logs`}}}); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Application": `C:\k\kubelet.exe`, "AppParameters": `--log_dir C:\logs --v=4`,
		"AppStdout": `D:\out\kubelet.log`, "AppStderr": `%LOGS%\errors.log`,
	} {
		if _, err := n.Registry.Set(t.Context(), &agentv1.RegistrySetRequest{
			Key:   key,
			Value: &agentv1.RegistryValue{Name: name, Type: "REG_EXPAND_SZ", String_: value}}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := logs.Find(t.Context(), n.Node, []string{"kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range found {
		paths = append(paths, f.Path)
	}
	for _, want := range []string{`C:\logs\kubelet.INFO`, `D:\out\kubelet.log`, `E:\logs\errors.log`} {
		if i := slices.Index(paths, want); i < 0 || slices.Contains(paths[i+1:], want) {
			t.Errorf("want %s once: %q", want, paths)
		}
	}
}

package servicelog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/servicelog"
)

func TestConfigured(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{`C:\k\kubelet.exe --v=2`, nil},
		{`C:\k\kubelet.exe --log-file=C:\l\k.log`, []string{`C:\l\k.log`}},
		{`C:\k\kubelet.exe --log_file C:\l\k.log`, []string{`C:\l\k.log`}},
		{`"C:\k\kubelet.exe" "--log-file=C:\my logs\k.log"`, []string{`C:\my logs\k.log`}},
		{`C:\k\kubelet.exe -log-dir="C:\my logs"`, []string{`C:\my logs\kubelet.INFO`, `C:\my logs\kubelet.exe.INFO`}},
		{`C:\k\kube-log-runner.exe "--log-file=C:\a \"b\"\k.log" C:\k\kubelet.exe`, []string{`C:\a "b"\k.log`}},
		{`C:\k\runner.exe log-file=x`, nil},
	} {
		if diff := cmp.Diff(test.want, servicelog.Configured("kubelet", test.line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.line, diff)
		}
	}
}

func TestPathsBeginWithTheConfigured(t *testing.T) {
	paths := servicelog.Paths("kubelet", `kubelet.exe --log-file=C:\l\k.log`)
	if paths[0] != `C:\l\k.log` {
		t.Errorf("first %s, expected the configured file", paths[0])
	}
	if diff := cmp.Diff(servicelog.Usual("kubelet"), paths[1:]); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
}

// The names are those that the programs' sources make: kube-log-runner (k8s.io/component-base/logs/kube-log-runner),
// nssm (io.cpp, rotate_file), lumberjack, logrotate, WinSW (RollingLogAppender), klog (klog_file.go).
func TestIsRotated(t *testing.T) {
	for _, test := range []struct {
		log, name string
		want      bool
	}{
		{"kubelet.log", "kubelet-20261129-010500.log", true},
		{"kubelet.log", "Kubelet-20261129-010500.LOG", true},
		{"kubelet.log", "kubelet-2026-11-29T01-05-00.000.log", true},
		{"kubelet.log", "kubelet-2026-11-29T01-05-00.000.log.gz", true},
		{"kubelet.err.log", "kubelet.err-20261129T010500.123.log", true},
		{"kubelet.err.log", "kubelet.1.err.log", true},
		{"kubelet.log", "kubelet.log.1", true},
		{"kubelet.log", "kubelet.log.12.gz", true},
		{"kubelet.log", "kubelet.log-20261129", true},
		{"kubelet.log", "kubelet.log-20261129.gz", true},
		{"kubelet", "kubelet.1", true},
		{"azure-vnet.log", "azure-vnet.log.1", true},
		{"kubelet.log", "kubelet.log", false},
		{"kubelet.log", "kubelet.err.log", false},
		{"kubelet.log", "kubelet.err-20261129T010500.123.log", false},
		{"kubelet.log", "kubelet.log.swdt-old", false},
		{"kubelet.log", "kubelet.log.gz", false},
		{"kubelet.log", "kubelet-2.log", false},
		{"azure-vnet.log", "azure-vnet-ipam.log", false},
		{"kube.log", "kubelet-20261129-010500.log", false},
	} {
		if got := servicelog.IsRotated(test.log, test.name); got != test.want {
			t.Errorf("%s of %s: %t", test.name, test.log, got)
		}
	}
}

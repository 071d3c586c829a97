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

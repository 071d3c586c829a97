package config_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/config"
)

func TestOfSSH(t *testing.T) {
	for typed, want := range map[string][3]string{
		"win-1":                       {"win-1", "", "win-1"},
		"Administrator@win-1":         {"win-1", "Administrator", "win-1"},
		`CORP\admin@10.0.0.5:22`:      {"10.0.0.5", `CORP\admin`, "10.0.0.5:22"},
		"admin@corp.example@10.0.0.5": {"10.0.0.5", "admin@corp.example", "10.0.0.5"},
		"127.0.0.1:2222":              {"127.0.0.1-2222", "", "127.0.0.1:2222"},
		"[fd00::1]:22":                {"fd00--1", "", "[fd00::1]:22"},
	} {
		d, err := config.OfSSH(typed)
		if err != nil {
			t.Errorf("%s: %v", typed, err)
			continue
		}
		got := [3]string{d.Node.Metadata.Name, d.Node.Spec.Credentials.Username, d.Node.Spec.Credentials.Hostname}
		if got != want || d.OfFile() {
			t.Errorf("%s is %q, of a file: %t; want %q", typed, got, d.OfFile(), want)
		}
	}
	for _, typed := range []string{"", "user@", "@host", "ssh://host", "host:0", "a b", "host:port"} {
		if d, err := config.OfSSH(typed); err == nil {
			t.Errorf("%q is the node %+v", typed, d.Node)
		}
	}
}

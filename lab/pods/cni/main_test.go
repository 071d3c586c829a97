package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryPodHasAnAddressInTheFormOfItsVersion(t *testing.T) {
	t.Setenv("CNI_CONTAINERID", "a pod")
	for version, want := range map[string]string{"0.3.1": `"version":"4"`, "1.0.0": `"address":"10.244.`} {
		answer, err := run("ADD", strings.NewReader(`{"cniVersion":"`+version+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(answer)
		switch {
		case err != nil:
			t.Errorf("%s: %v", version, err)
		case !strings.Contains(string(text), want):
			t.Errorf("%s: text lacks %q:\n%s", version, want, string(text))
		}
	}
	if answer, err := run("DEL", strings.NewReader("{}")); answer != nil || err != nil {
		t.Errorf("DEL: %v, %v", answer, err)
	}
	if _, err := run("FLY", strings.NewReader("{}")); err == nil {
		t.Error("an unknown command was done")
	}
	if _, err := run("ADD", strings.NewReader("no configuration")); err == nil {
		t.Error("a network without a configuration was added")
	}
}

// The name servers of a pod are written to the file that the network names.
func TestNameServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	for _, names := range []string{
		`{"servers": ["10.96.0.10"], "searches": ["a.svc.cluster.local", "cluster.local"], "options": ["ndots:5"]}`, `{}`,
	} {
		_, err := run("ADD", strings.NewReader(`{"cniVersion": "1.0.0", "dnsFile": "`+file+`", "runtimeConfig": {"dns": `+
			names+`}}`))
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file) // a pod without name servers leaves those of the other
	if err != nil {
		t.Fatal(err)
	}
	const want = "nameserver 10.96.0.10\nsearch a.svc.cluster.local cluster.local\noptions ndots:5\n"
	if string(text) != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

package main

import (
	"encoding/json"
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

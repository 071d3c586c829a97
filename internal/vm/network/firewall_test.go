package network

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheKernelShowsFramesOfBridges(t *testing.T) {
	for text, want := range map[string]bool{"1\n": true, "0\n": false, "": false} {
		root := fstest.MapFS{"proc/sys/net/bridge/bridge-nf-call-iptables": {Data: []byte(text)}}
		if got := seesBridges(root); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if seesBridges(fstest.MapFS{}) {
		t.Error("without the module br_netfilter")
	}
}

// The remedy is a command of the program that makes the rules.
func TestTheOwnerOfTheRules(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	docker := Place{Bridge: "br-kind", Docker: &DockerNetwork{}}
	for want, c := range map[string]struct {
		root  fstest.MapFS
		place Place
	}{
		"firewall-cmd --zone=trusted --change-interface=br-kind": {fstest.MapFS{
			"proc/1/comm": file("systemd\n"), "proc/77/comm": file("firewalld\n"),
			"etc/ufw/ufw.conf": file("ENABLED=yes\n")}, docker},
		"ufw route allow in on br-kind out on br-kind": {fstest.MapFS{
			"proc/1/comm": file("systemd\n"), "etc/ufw/ufw.conf": file("# on\nENABLED=yes\nLOGLEVEL=low\n")}, docker},
		"iptables -I DOCKER-USER -i br-kind -o br-kind": {fstest.MapFS{"etc/ufw/ufw.conf": file("ENABLED=no\n")}, docker},
		"iptables -I FORWARD -i br0 -o br0":             {fstest.MapFS{}, Place{Bridge: "br0"}},
	} {
		if got := allow(c.root, c.place); !strings.Contains(got, want) {
			t.Errorf("%q is not in the remedy %q", want, got)
		}
	}
}

package content_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout/content"
)

func good() fleetv1.Content {
	return fleetv1.Content{
		Setup: &fleetv1.Setup{
			Hosts:    []fleetv1.HostsEntry{{Address: "192.0.2.1", Names: []string{"registry.example"}}},
			Firewall: []fleetv1.FirewallRule{{Name: "kubelet", Ports: "10250", Profiles: "domain", Addresses: "192.0.2.0/24"}},
			Features: []string{"Containers"}, Path: []string{`C:\k`},
		},
		Provisioners: []fleetv1.Provisioner{{Name: "kubelet", SourceURL: "https://binaries.example/kubelet.exe",
			SHA256: strings.Repeat("0123456789abcdef", 4), Destination: `C:\k\kubelet.exe`, Health: &fleetv1.Health{}}},
	}
}

// A rule of node files that the schema cannot express is a problem of the field in the rollout.
func TestWrongFieldsAreNamed(t *testing.T) {
	if _, err := content.Document("n", good()); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*fleetv1.Content){
		"spec.content.setup.hosts[0].address":         func(c *fleetv1.Content) { c.Setup.Hosts[0].Address = "192.0.2.256" },
		"spec.content.setup.hosts[0].names[0]":        func(c *fleetv1.Content) { c.Setup.Hosts[0].Names[0] = "a b" },
		"spec.content.setup.firewall[0].ports":        func(c *fleetv1.Content) { c.Setup.Firewall[0].Ports = "many" },
		"spec.content.setup.firewall[0].profiles":     func(c *fleetv1.Content) { c.Setup.Firewall[0].Profiles = "home" },
		"spec.content.setup.firewall[0].addresses":    func(c *fleetv1.Content) { c.Setup.Firewall[0].Addresses = "here" },
		"spec.content.provisioners[0].health.httpGet": func(c *fleetv1.Content) { c.Provisioners[0].Health.HTTPGet = "ftp://a" },
		"spec.content.provisioners[0].health.criPipe": func(c *fleetv1.Content) { c.Provisioners[0].Health.CRIPipe = "pipe" },
		"spec.content.provisioners[0].destination":    func(c *fleetv1.Content) { c.Provisioners[0].Destination = `C:\k\a?b.exe` },
	} {
		c := good()
		spoil(&c)
		_, err := content.Document("n", c)
		wrong, ok := errors.AsType[*content.Error](err)
		if !ok {
			t.Errorf("%s: the error is %v", field, err)
			continue
		}
		var fields []string
		for _, p := range wrong.Problems {
			fields = append(fields, p.Field)
		}
		if diff := cmp.Diff([]string{field}, fields, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
		if !strings.Contains(err.Error(), field+": ") {
			t.Errorf("the message does not name %s: %v", field, err)
		}
	}
}

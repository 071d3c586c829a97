package content_test

import (
	"slices"
	"testing"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout/content"
)

func TestDifferences(t *testing.T) {
	base := fleetv1.Content{
		Setup: &fleetv1.Setup{Path: []string{`C:\a`}, Environment: map[string]string{"A": "b"}, Features: []string{}},
		Provisioners: []fleetv1.Provisioner{{Name: "kubelet", SHA256: "a", Args: []string{"--v=2"}},
			{Name: "containerd"}},
	}
	yes := true
	for want, change := range map[string]func(*fleetv1.Content){
		"":                          func(c *fleetv1.Content) { c.Setup.Features, c.Setup.Hosts = nil, []fleetv1.HostsEntry{} },
		"provisioners[0].args[0]":   func(c *fleetv1.Content) { c.Provisioners[0].Args[0] = "--v=4" },
		"provisioners[0].args":      func(c *fleetv1.Content) { c.Provisioners[0].Args = nil },
		"provisioners[1]":           func(c *fleetv1.Content) { c.Provisioners = c.Provisioners[:1] },
		"provisioners[2]":           func(c *fleetv1.Content) { c.Provisioners = append(c.Provisioners, fleetv1.Provisioner{}) },
		"setup.environment.A":       func(c *fleetv1.Content) { c.Setup.Environment["A"] = "c" },
		"setup.environment.B":       func(c *fleetv1.Content) { c.Setup.Environment["B"] = "" },
		"setup.enableRDP":           func(c *fleetv1.Content) { c.Setup.EnableRDP = &yes },
		"setup":                     func(c *fleetv1.Content) { c.Setup = nil },
		"provisioners[1].sha256":    func(c *fleetv1.Content) { c.Provisioners[1].SHA256 = "b" },
		"provisioners[0].health":    func(c *fleetv1.Content) { c.Provisioners[0].Health = &fleetv1.Health{} },
		"provisioners[0].overwrite": func(c *fleetv1.Content) { c.Provisioners[0].Overwrite = &yes },
	} {
		other := base.DeepCopy()
		change(other)
		wanted := []string{want}
		if want == "" {
			wanted = nil
		}
		for _, pair := range [][2]fleetv1.Content{{base, *other}, {*other, base}} {
			if got, err := content.Differences(pair[0], pair[1]); err != nil || !slices.Equal(got, wanted) {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		}
	}
}

package platformtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func testMachine(t *testing.T, f Fixture) {
	facts, err := f.Platform.Machine.Facts(t.Context())
	check(t, err)
	for name, missing := range map[string]bool{
		"hostname": facts.Hostname == "", "product": facts.Product == "",
		"build": !strings.Contains(facts.Build, "."), "architecture": facts.Architecture == "",
		"boot id": facts.BootID == "", "uptime": facts.Uptime < 0, "cpus": facts.CPUs < 1,
		"memory":       facts.Memory == 0 || facts.MemoryFree == 0 || facts.MemoryFree > facts.Memory,
		"system drive": len(facts.SystemDrive) != 2, "free disk": facts.DiskFree == 0,
	} {
		if missing {
			t.Errorf("%s: missing is true, want false", name)
		}
	}
	again, err := f.Platform.Machine.Facts(t.Context())
	check(t, err)
	if again.BootID != facts.BootID || again.Uptime < facts.Uptime {
		t.Errorf("without a reboot: %+v, then %+v", facts, again)
	}
	if facts.Time.IsZero() || again.Time.Before(facts.Time) {
		t.Errorf("the clock says %s, then %s", facts.Time, again.Time)
	}
	check(t, f.Platform.Machine.BroadcastEnvironment(t.Context()))
	if ending, err := f.Platform.Machine.ShuttingDown(t.Context()); ending || err != nil {
		t.Errorf("a machine that runs is shutting down: %v, %v", ending, err)
	}
}

func testFeatures(t *testing.T, f Fixture) {
	need(t, f.Has.Features, "optional features")
	ctx, features := t.Context(), f.Platform.Features
	_, state := features.State(ctx, "swdt-No-Such-Feature")
	_, enable := features.Enable(ctx, "swdt-No-Such-Feature")
	for what, err := range map[string]error{"state": state, "enable": enable} {
		if !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("%s of an unknown feature: %v", what, err)
		}
	}
	expect := func(reboot bool, now, later platform.FeatureState) {
		t.Helper()
		want := now
		if reboot {
			want = later
		}
		if got, err := features.State(ctx, f.Feature); got != want || err != nil {
			t.Errorf("%s is %s, %v; want %s", f.Feature, got, err, want)
		}
	}
	reboot, err := features.Enable(ctx, f.Feature)
	check(t, err)
	expect(reboot, platform.FeatureEnabled, platform.FeatureEnablePending)
	reboot, err = features.Disable(ctx, f.Feature)
	check(t, err)
	expect(reboot, platform.FeatureDisabled, platform.FeatureDisablePending)
}

func testFirewall(t *testing.T, f Fixture) {
	need(t, f.Has.Firewall, "a firewall")
	ctx, firewall := t.Context(), f.Platform.Firewall
	const name = "swdt hosttest"
	find := func() []platform.FirewallRule {
		t.Helper()
		rules, err := firewall.Rules(ctx)
		check(t, err)
		var found []platform.FirewallRule
		for _, rule := range rules {
			if rule.Name == name {
				found = append(found, rule)
			}
		}
		return found
	}
	rule := platform.FirewallRule{
		Name: name, Enabled: true, Inbound: true, Allow: true, Protocol: "tcp",
		Ports: "10250,8000-8100", Profiles: "any",
	}
	check(t, firewall.Add(ctx, rule))
	if got := find(); len(got) != 1 || got[0] != rule {
		t.Errorf("added %+v, got %+v", rule, got)
	}
	rule.Ports, rule.Protocol, rule.Allow = "53", "udp", false
	check(t, firewall.Add(ctx, rule))
	if got := find(); len(got) != 1 || got[0] != rule {
		t.Errorf("replaced by %+v, got %+v", rule, got)
	}
	check(t, firewall.Remove(ctx, name))
	if got := find(); len(got) != 0 {
		t.Errorf("removed, got %+v", got)
	}
	if err := firewall.Remove(ctx, name); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("removed twice: %v", err)
	}
	const remoteDesktop = "@FirewallAPI.dll,-28752"
	for _, enabled := range []bool{true, false} {
		check(t, firewall.EnableGroup(ctx, remoteDesktop, enabled))
		rules, err := firewall.Rules(ctx)
		check(t, err)
		seen := 0
		for _, rule := range rules {
			if rule.Group == remoteDesktop {
				seen++
				if rule.Enabled != enabled {
					t.Errorf("%s is enabled: %v", rule.Name, rule.Enabled)
				}
			}
		}
		if seen == 0 {
			t.Error("the group has no rules")
		}
	}
}

package hosttest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/host"
)

func testMachine(t *testing.T, f Fixture) {
	facts, err := f.Host.Machine.Facts(t.Context())
	check(t, err)
	for name, missing := range map[string]bool{
		"hostname": facts.Hostname == "", "product": facts.Product == "",
		"build": !strings.Contains(facts.Build, "."), "architecture": facts.Architecture == "",
		"boot id": facts.BootID == "", "uptime": facts.Uptime < 0, "cpus": facts.CPUs < 1,
		"memory":       facts.Memory == 0 || facts.MemoryFree == 0 || facts.MemoryFree > facts.Memory,
		"system drive": len(facts.SystemDrive) != 2, "free disk": facts.DiskFree == 0,
	} {
		if missing {
			t.Errorf("%s: %+v", name, facts)
		}
	}
	again, err := f.Host.Machine.Facts(t.Context())
	check(t, err)
	if again.BootID != facts.BootID || again.Uptime < facts.Uptime {
		t.Errorf("without a reboot: %+v, then %+v", facts, again)
	}
	check(t, f.Host.Machine.BroadcastEnvironment(t.Context()))
}

func testNetwork(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("HTTPGet", func(t *testing.T) {
		f := fixture(t)
		need(t, f.ServeHTTP != nil, "an HTTP server for the test")
		mux := http.NewServeMux()
		mux.HandleFunc("GET /ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
		mux.HandleFunc("GET /bad", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "not ok")
		})
		mux.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
		mux.HandleFunc("GET /much", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 100<<10))
		})
		root := f.ServeHTTP(t, mux)
		get := func(path string) (int, string) {
			t.Helper()
			status, body, err := f.Host.Network.HTTPGet(t.Context(), root+path)
			check(t, err)
			return status, string(body)
		}
		if status, body := get("/ok"); status != 200 || body != "ok" {
			t.Errorf("%d %q", status, body)
		}
		if status, body := get("/bad"); status != 500 || body != "not ok" {
			t.Errorf("%d %q", status, body)
		}
		if status, _ := get("/away"); status != 302 {
			t.Errorf("a redirect was followed: %d", status)
		}
		if _, body := get("/much"); len(body) != 64<<10 {
			t.Errorf("%d bytes", len(body))
		}
	})
	t.Run("NobodyAnswers", func(t *testing.T) {
		f := fixture(t)
		if _, _, err := f.Host.Network.HTTPGet(t.Context(), "http://127.0.0.1:1/"); err == nil {
			t.Error("port 1 answered")
		}
		if _, err := f.Host.Network.DialPipe(t.Context(), `\\.\pipe\swdt-nobody`); !errors.Is(err, host.ErrNotExist) {
			t.Errorf("pipe: %v", err)
		}
	})
	t.Run("DialPipe", func(t *testing.T) {
		f := fixture(t)
		need(t, f.ServePipe != nil, "a pipe server for the test")
		path := f.ServePipe(t)
		for range 3 {
			conn, err := f.Host.Network.DialPipe(t.Context(), path)
			check(t, err)
			_, err = conn.Write([]byte("hello"))
			check(t, err)
			answer := make([]byte, 5)
			_, err = io.ReadFull(conn, answer)
			check(t, err)
			if string(answer) != "hello" {
				t.Errorf("got %q", answer)
			}
			check(t, conn.Close())
		}
	})
}

func testFeatures(t *testing.T, f Fixture) {
	need(t, f.Has.Features, "optional features")
	ctx, features := t.Context(), f.Host.Features
	_, state := features.State(ctx, "swdt-No-Such-Feature")
	_, enable := features.Enable(ctx, "swdt-No-Such-Feature")
	for what, err := range map[string]error{"state": state, "enable": enable} {
		if !errors.Is(err, host.ErrNotExist) {
			t.Errorf("%s of an unknown feature: %v", what, err)
		}
	}
	expect := func(reboot bool, now, later host.FeatureState) {
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
	expect(reboot, host.FeatureEnabled, host.FeatureEnablePending)
	reboot, err = features.Disable(ctx, f.Feature)
	check(t, err)
	expect(reboot, host.FeatureDisabled, host.FeatureDisablePending)
}

func testFirewall(t *testing.T, f Fixture) {
	need(t, f.Has.Firewall, "a firewall")
	ctx, firewall := t.Context(), f.Host.Firewall
	const name = "swdt hosttest"
	find := func() []host.FirewallRule {
		t.Helper()
		rules, err := firewall.Rules(ctx)
		check(t, err)
		var found []host.FirewallRule
		for _, rule := range rules {
			if rule.Name == name {
				found = append(found, rule)
			}
		}
		return found
	}
	rule := host.FirewallRule{
		Name: name, Enabled: true, Inbound: true, Allow: true, Protocol: "tcp", Ports: "10250,8000-8100", Profiles: "any",
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
	if err := firewall.Remove(ctx, name); !errors.Is(err, host.ErrNotExist) {
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

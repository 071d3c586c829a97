package network

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/testing/deadline"
	"github.com/swdt-dev/swdt/internal/testing/dockertest"
)

func TestHostsOfDocker(t *testing.T) {
	for host, want := range map[string]Docker{
		"":                          {Socket: dockerSocket},
		"unix:///run/user/1/d.sock": {Socket: "/run/user/1/d.sock"},
		"tcp://10.0.0.9:2376":       {Remote: "tcp://10.0.0.9:2376"},
		"ssh://me@host":             {Remote: "ssh://me@host"},
	} {
		got := DockerAt(host)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", host, diff)
		}
		if got.Host() != host {
			t.Errorf("%q is written as %q", host, got.Host())
		}
	}
}

// An engine elsewhere is not asked: its bridges are not here, and nothing is sent to that address.
func TestAnEngineElsewhereIsNotAsked(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	asked := make(chan error, 1)
	go func() {
		_, err := listener.Accept()
		asked <- err
	}()
	d := DockerAt("tcp://" + listener.Addr().String())
	_, one := d.Network(t.Context(), "kind")
	_, all := d.Networks(t.Context())
	kind := NewNetwork{Name: "kind", Subnet: prefix("172.18.0.0/16")}
	for what, err := range map[string]error{
		"one": one, "all": all, "make": d.Make(t.Context(), kind), "remove": d.Remove(t.Context(), "kind"),
	} {
		if !errors.Is(err, errRemote) {
			t.Errorf("%s: %v, want errRemote", what, err)
		}
	}
	must(t, listener.Close())
	if err := <-asked; err == nil {
		t.Error("swdt has connected to the engine")
	}
}

func TestANetworkIsMadeAndRemoved(t *testing.T) {
	engine := dockertest.Start(t)
	d := DockerAt(engine.Host())
	wanted := NewNetwork{Name: "kind", Subnet: netip.MustParsePrefix("172.20.0.0/16")}
	must(t, d.Make(t.Context(), wanted))
	made, err := d.Network(t.Context(), "kind")
	must(t, err)
	type facts struct {
		Made                  bool
		Subnet, Range, Lowest string
	}
	free, err := made.FreeAddress(nil)
	must(t, err)
	got := facts{made.Made, made.Subnet.String(), made.Range.String(), free.String()}
	if diff := cmp.Diff(facts{true, "172.20.0.0/16", "172.20.0.0/17", "172.20.255.254"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if made.Assigns(free) {
		t.Errorf("Docker may give %s to a container", free)
	}
	wantStatus(t, "a second one", d.Make(t.Context(), wanted), http.StatusConflict)
	busy := engine.Networks()["kind"]
	busy.Containers = map[string]string{"kind-worker": "172.20.0.3"}
	engine.Set(busy)
	wantStatus(t, "remove one with containers", d.Remove(t.Context(), "kind"), http.StatusForbidden)
	busy.Containers = nil
	engine.Set(busy)
	must(t, d.Remove(t.Context(), "kind"))
	wantStatus(t, "remove it again", d.Remove(t.Context(), "kind"), http.StatusNotFound)
}

func wantStatus(t *testing.T, what string, err error, status int) {
	t.Helper()
	var refused *DockerError
	if !errors.As(err, &refused) || refused.Status != status {
		t.Errorf("%s: %v, want the status %d", what, err, status)
	}
}

func TestAMachineWithoutIPv6(t *testing.T) {
	engine := dockertest.Start(t)
	engine.RefuseIPv6()
	wanted := NewNetwork{Name: "kind", Subnet: netip.MustParsePrefix("172.18.0.0/16")}
	must(t, DockerAt(engine.Host()).Make(t.Context(), wanted))
	if n := engine.Networks()["kind"]; n.Range != "172.18.0.0/17" {
		t.Errorf("%+v", n)
	}
}

// The command of a dry run has the values that Make sends.
func TestTheCommandOfANetwork(t *testing.T) {
	const want = "docker network create --driver bridge --ipv6 --subnet fc00:f853:ccd:e793::/64 --subnet 172.18.0.0/16 " +
		"--ip-range 172.18.0.0/17 --opt com.docker.network.bridge.enable_ip_masquerade=true --label dev.swdt.made=true kind"
	got := NewNetwork{Name: "kind", Subnet: netip.MustParsePrefix("172.18.0.0/16")}.Command()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnginesWithoutBridgesHere(t *testing.T) {
	engine := dockertest.Start(t)
	d := DockerAt(engine.Host())
	for _, test := range []struct {
		system, option, want string
	}{
		{"Docker Desktop", "name=seccomp", "Docker Desktop runs its engine in a VM of its own"},
		{"Debian GNU/Linux 12", "name=rootless", "Docker runs rootless, in a network of its own"},
		{"Debian GNU/Linux 12", "name=seccomp", ""},
	} {
		engine.Describe(test.system, test.option)
		if got := d.where(t.Context()); got != test.want {
			t.Errorf("%s, %s: %q, want %q", test.system, test.option, got, test.want)
		}
	}
}

func TestFreeSubnets(t *testing.T) {
	subnet := netip.MustParsePrefix
	for want, used := range map[string][]netip.Prefix{
		"172.18.0.0/16": {subnet("192.168.0.0/16"), subnet("172.17.0.0/16")},
		"172.19.0.0/16": {subnet("172.18.5.0/24")},
		"172.24.0.0/16": {subnet("172.16.0.0/13")},
	} {
		if got, err := freeSubnet(used); err != nil || got.String() != want {
			t.Errorf("beside %v: %s, %v; want %s", used, got, err, want)
		}
	}
	if got, err := freeSubnet([]netip.Prefix{subnet("172.16.0.0/12")}); err == nil {
		t.Errorf("%s, but nothing is free", got)
	}
}

// A program at the engine's socket that is no Docker gains no endless wait, no memory and no line of
// the user's terminal.
func TestHostileEngines(t *testing.T) {
	passing, pass := deadline.Context(t.Context())
	for name, answer := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) {
			pass()
			<-r.Context().Done()
		},
		"an error without end": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"message": "` + strings.Repeat("x", largestDockerText) + `"}`))
		},
		"an answer without end": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte(`[[[[[[[[`), 1024)); err != nil {
					return
				}
			}
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "d.sock")
			listener, err := net.Listen("unix", socket)
			must(t, err)
			server := &http.Server{Handler: answer}
			go func() { _ = server.Serve(listener) }()
			defer server.Close()
			ctx := t.Context()
			if name == "no answer" {
				ctx = passing
			}
			_, err = Docker{Socket: socket}.Network(ctx, "kind")
			if err == nil || len(err.Error()) > 2*largestComplaint {
				t.Errorf("an error of %d bytes: %.200v", len(err.Error()), err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

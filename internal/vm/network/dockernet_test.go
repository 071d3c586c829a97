package network

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// serveDocker answers as Docker's engine does, behind a Unix socket.
func serveDocker(t *testing.T, answers map[string]string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.EscapedPath()]
		if !ok {
			http.Error(w, `{"message":"network not found"}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(answer))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket
}

const kindNetwork = `{
  "Name": "kind", "Id": "f1d2d2f924e986ac86fdf7b36c94bcdf32beec15", "Driver": "bridge", "EnableIPv6": true,
  "IPAM": {"Config": [{"Subnet": "fc00:f853:ccd:e793::/64"}, {"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}]},
  "Containers": {
    "a1": {"Name": "kind-control-plane", "IPv4Address": "172.18.0.2/16"},
    "a2": {"Name": "kind-worker", "IPv4Address": "172.18.255.254/16"},
    "a3": {"Name": "starting", "IPv4Address": ""}
  },
  "Options": {"com.docker.network.bridge.enable_ip_masquerade": "true"}
}`

func TestLookUpFindsKindsBridge(t *testing.T) {
	socket := serveDocker(t, map[string]string{"/networks/kind": kindNetwork})
	n, err := Docker{Socket: socket}.Network(t.Context(), "kind")
	if err != nil {
		t.Fatal(err)
	}
	want := DockerNetwork{
		Name: "kind", Bridge: "br-f1d2d2f924e9", Subnet: netip.MustParsePrefix("172.18.0.0/16"), Gateway: ip("172.18.0.1"),
		Containers: map[string]netip.Addr{"kind-control-plane": ip("172.18.0.2"), "kind-worker": ip("172.18.255.254")},
	}
	compare := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
	if diff := cmp.Diff(want, n, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	name, address, ok := n.ControlPlane("kind")
	if !ok {
		t.Error("the network has no control plane")
	}
	if name != "kind-control-plane" || address != ip("172.18.0.2") {
		t.Errorf("the control plane is %s at %s, want kind-control-plane at 172.18.0.2", name, address)
	}
	free, err := n.FreeAddress([]netip.Addr{ip("172.18.255.253")})
	if err != nil || free != ip("172.18.255.252") {
		t.Errorf("free address: got %s, %v; want 172.18.255.252", free, err)
	}
}

func TestLookUpRefusesWhatIsNoBridge(t *testing.T) {
	socket := serveDocker(t, map[string]string{
		"/networks/host": `{"Name": "host", "Driver": "host"}`,
		"/networks/noid": `{"Name": "noid", "Driver": "bridge", "IPAM": {"Config": [{"Subnet": "10.0.0.0/24"}]}}`,
		"/networks/v6": `{"Name": "v6", "Driver": "bridge", "Id": "f1d2d2f924e986",
			"IPAM": {"Config": [{"Subnet": "fd00::/64"}]}}`,
		"/networks/hostile": `{"Name": "x", "Driver": "bridge", "Options": {"com.docker.network.bridge.name": "../../etc"}}`,
		"/networks/cut":     `{"Name": "x", "Dri`,
		"/networks/endless": `{"Name": "` + strings.Repeat("x", largestDockerText+10) + `"}`,
	})
	for _, name := range []string{"host", "noid", "v6", "hostile", "cut", "endless"} {
		if n, err := (Docker{Socket: socket}).Network(t.Context(), name); err == nil {
			t.Errorf("%s was accepted: %+v", name, n)
		}
	}
	for _, name := range []string{"absent", "../networks/kind", "kind?x"} {
		if _, err := (Docker{Socket: socket}).Network(t.Context(), name); !errors.Is(err, ErrNoDockerNetwork) {
			t.Errorf("%s: got %v, want ErrNoDockerNetwork", name, err)
		}
	}
	if _, err := (Docker{Socket: filepath.Join(t.TempDir(), "none.sock")}).Network(t.Context(), "kind"); err == nil {
		t.Error("an absent engine answered")
	}
}

func TestASmallSubnetIsFull(t *testing.T) {
	n := DockerNetwork{Name: "kind", Subnet: netip.MustParsePrefix("10.0.0.0/30"), Gateway: ip("10.0.0.1")}
	if free, err := n.FreeAddress(nil); err != nil || free != ip("10.0.0.2") {
		t.Errorf("got %s, %v; want 10.0.0.2", free, err)
	}
	if free, err := n.FreeAddress([]netip.Addr{ip("10.0.0.2")}); err == nil {
		t.Errorf("got %s of a subnet that is full", free)
	}
}

func ip(text string) netip.Addr { return netip.MustParseAddr(text) }

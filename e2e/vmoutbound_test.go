//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/testing/netspace"
	"github.com/swdt-dev/swdt/internal/testing/vmguest"
)

// TestAVMWithOutbound checks that a guest with outbound: true reaches a server at another address, and no service on
// this machine's loopback address. The guest's own kernel makes the connections.
func TestAVMWithOutbound(t *testing.T) {
	image := vmguest.Disk(t)
	home := newVMHome(t)
	file := home.nodeFile(t, image)
	text := strings.Replace(readText(t, file), "adapter: virtio", "adapter: virtio\n      outbound: true", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	created := oneVM(t, ok(t, "vm", "create", "-c", file, "-o", "json"))
	home.writeCD(t, vmguest.Settings{
		Hostname: vmName, Preset: "node", AuthorizedKeys: []string{readText(t, created.Key+".pub")},
	})
	started := oneVM(t, home.start(t, file))
	wantVM(t, started, "changed", "running")
	if got := setUp(t, file); got != "changed" { // through the forwarded port
		t.Errorf("setup: %s, want changed", got)
	}

	guest := loginTo(t, started)
	const another = "198.51.100.8"
	netspace.AddAddress(t, another)
	outside := greeter(t, another+":0")
	inside := greeter(t, "127.0.0.1:0")
	if got := outside.from(guest, outside.address.IP.String(), time.Minute); got != greeting {
		t.Errorf("the guest reads %q from a server at another address", got)
	}
	for _, address := range []string{"10.0.2.2", "10.0.2.3", "169.254.1.1"} {
		if got := inside.from(guest, address, 10*time.Second); got != "" {
			t.Errorf("the guest reads %q through %s", got, address)
		}
	}
	if n := inside.count(); n != 0 {
		t.Errorf("%d connections of the guest have come to 127.0.0.1", n)
	}
	home.stop(t, file)
	wantVM(t, oneVM(t, ok(t, "vm", "delete", "--yes", "-c", file, "-o", "json")), "changed", "absent")
	home.wantNothing(t, started)
}

// loginTo returns a connection to the guest's SSH server, which connects to other machines as the guest.
func loginTo(t *testing.T, vm vmReport) *ssh.Client {
	t.Helper()
	signer, err := ssh.ParsePrivateKey([]byte(readText(t, vm.Key)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.Dial("tcp", vm.Address, &ssh.ClientConfig{
		User: vmguest.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

const greeting = "hello"

// greetings is a server that greets each client.
type greetings struct {
	address *net.TCPAddr
	clients chan struct{}
}

func greeter(t *testing.T, address string) greetings {
	t.Helper()
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	g := greetings{listener.Addr().(*net.TCPAddr), make(chan struct{}, 100)}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			g.clients <- struct{}{}
			_, _ = io.WriteString(client, greeting)
			_ = client.Close()
		}
	}()
	t.Cleanup(func() { listener.Close() })
	return g
}

// from returns what a guest reads from the server's port at an address; "" if it cannot connect, or if nothing comes within limit.
func (g greetings) from(guest *ssh.Client, address string, limit time.Duration) string {
	read := make(chan string, 1)
	go func() {
		conn, err := guest.Dial("tcp", fmt.Sprintf("%s:%d", address, g.address.Port))
		if err != nil {
			read <- ""
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		read <- string(text)
	}()
	select {
	case text := <-read:
		return text
	case <-time.After(limit): // no answer comes
		return ""
	}
}

// count returns how many clients have come.
func (g greetings) count() int { return len(g.clients) }

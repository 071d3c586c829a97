package libvirt

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"

	"github.com/swdt-dev/swdt/internal/vm"
)

// limit is the time limit for all calls of one method.
type limit time.Duration

const (
	// answerLimit bounds queries, which libvirt answers in milliseconds.
	answerLimit = limit(30 * time.Second)
	// workLimit bounds a start, or a snapshot of a large guest.
	workLimit = limit(30 * time.Minute)
	// dialLimit bounds the connection to a socket.
	dialLimit = 10 * time.Second
)

// client is a connection to a daemon.
type client struct{ *libvirt.Libvirt }

// ask connects to the libvirt at a URI, calls the given function with the connection, and returns
// the function's result. If ctx ends first, or the limit passes, ask closes the connection and
// returns an error. It does not wait for the function, and drops the function's result.
func ask[T any](ctx context.Context, uri string, limit limit, work func(*client) (T, error)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	bounded, cancel := context.WithTimeout(ctx, time.Duration(limit))
	defer cancel()
	answers := make(chan answer, 1)
	if err := bounded.Err(); err != nil {
		return answer{}.result, context.Cause(ctx)
	}
	go func() {
		result, err := talk(bounded, uri, work)
		answers <- answer{result, err}
	}()
	select {
	case a := <-answers:
		if bounded.Err() != nil && errors.Is(a.err, libvirt.ErrInterrupted) {
			a.err = context.Cause(bounded)
		}
		return a.result, a.err
	case <-bounded.Done():
		return answer{}.result, fmt.Errorf("wait for libvirt: %w", context.Cause(bounded))
	}
}

// talk calls the given function with a new connection. It closes the connection when the function
// returns or ctx ends.
func talk[T any](ctx context.Context, uri string, work func(*client) (T, error)) (result T, err error) {
	conn, remote, err := dial(ctx, uri)
	if err != nil {
		return result, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	rpc := libvirt.NewWithDialer(dialers.NewAlreadyConnected(&frames{Conn: conn}))
	if err := rpc.ConnectToURI(remote); err != nil {
		return result, &ConnectError{URI: uri, Err: err, Remedy: "`virsh -c " + uri + " list` shows whether you may use it"}
	}
	result, err = work(&client{rpc})
	if ctx.Err() == nil {
		_ = rpc.Disconnect() // nothing depends on an orderly end
	}
	return result, err
}

// ConnectError reports that libvirt cannot be reached.
type ConnectError struct {
	URI    string
	Err    error
	Remedy string
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("connect to libvirt at %s: %v; %s", e.URI, e.Err, e.Remedy)
}

func (e *ConnectError) Unwrap() error { return e.Err }

// dial connects to the first socket of a URI on which a daemon listens. It also returns the URI in
// the form that the daemon takes, without the transport and the socket.
func dial(ctx context.Context, uri string) (net.Conn, libvirt.ConnectURI, error) {
	parsed, err := url.Parse(uri)
	if err != nil {
		return nil, "", &ConnectError{uri, err, "correct spec.machine.uri"}
	}
	bounded, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	var failed error
	for _, path := range sockets(parsed) {
		conn, err := (&net.Dialer{}).DialContext(bounded, "unix", path)
		if err == nil {
			if err := checkPeer(conn, path); err != nil {
				conn.Close()
				return nil, "", &ConnectError{uri, err, "name the socket of your own libvirt"}
			}
			return conn, libvirt.RemoteURI(parsed), nil
		}
		if failed == nil || !errors.Is(err, fs.ErrNotExist) {
			failed = err
		}
	}
	return nil, "", &ConnectError{uri, failed, dialRemedy(parsed, failed)}
}

// dialRemedy returns what a person can do if no daemon answers.
func dialRemedy(uri *url.URL, err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "join the group libvirt with `sudo usermod -aG libvirt $USER`, and log in again"
	case uri.Path == "/session":
		return "start your daemon with `virsh -c qemu:///session list`; it ends by itself if it has no work"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return "install and start it: `sudo apt-get install libvirt-daemon-system` on Debian and Ubuntu, " +
			"`sudo systemctl start libvirtd`"
	}
	return "`virsh -c " + uri.String() + " list` shows whether you can use it"
}

// sockets returns the paths of the sockets at which a daemon for the URI may listen: libvirtd,
// which serves all drivers, or the daemon for one driver, such as virtqemud. If the URI names a
// socket, sockets returns only that one.
func sockets(uri *url.URL) []string {
	if path := uri.Query().Get("socket"); path != "" {
		return []string{path}
	}
	names := []string{"libvirt-sock", "virt" + strings.SplitN(uri.Scheme, "+", 2)[0] + "d-sock"}
	folders := []string{"/run/libvirt", "/var/run/libvirt"}
	if uri.Path == "/session" {
		folders = []string{filepath.Join(runtimeFolder(), "libvirt")}
	}
	var paths []string
	for _, folder := range folders {
		for _, name := range names {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	return paths
}

// runtimeFolder returns the folder of this user's sockets, as libvirt chooses it.
func runtimeFolder() string {
	cache, _ := os.UserCacheDir() // if cache is empty, dial finds no daemon and fails
	return cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), cache)
}

// domain returns the adopted domain of a VM, or ErrAbsent.
func (c *client) domain(m vm.Machine) (libvirt.Domain, error) {
	id, err := parseUUID(m.UUID)
	if err != nil {
		return libvirt.Domain{}, err
	}
	domain, err := c.DomainLookupByUUID(id)
	if hasCode(err, libvirt.ErrNoDomain) {
		return domain, &AbsentError{m.Domain, m.URI}
	}
	return domain, err
}

func parseUUID(text string) (id libvirt.UUID, err error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("the record's UUID %.60q is damaged; `swdt vm delete` and `swdt vm create` adopt the "+
			"domain anew", text)
	}
	copy(id[:], raw)
	return id, nil
}

func uuidText(id libvirt.UUID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// hasCode reports whether an error of libvirt has one of these codes.
func hasCode(err error, codes ...libvirt.ErrorNumber) bool {
	var refused libvirt.Error
	if !errors.As(err, &refused) {
		return errors.Is(err, libvirt.ErrUnsupported) && containsCode(codes, libvirt.ErrNoSupport)
	}
	return containsCode(codes, libvirt.ErrorNumber(refused.Code))
}

func containsCode(codes []libvirt.ErrorNumber, code libvirt.ErrorNumber) bool {
	for _, known := range codes {
		if known == code {
			return true
		}
	}
	return false
}

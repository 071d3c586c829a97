package criproxy

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

// longestSocket is the longest path of a unix socket, in bytes: the limit of macOS, which is the
// smallest limit of all systems.
const longestSocket = 103

// AddressError reports an address at which a proxy must not listen.
type AddressError struct{ Address, Reason string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s: %s; use unix:///PATH or tcp://127.0.0.1:PORT (0: any free one)", e.Address, e.Reason)
}

// BusyError reports a socket that another proxy serves.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s is served by another swdt; use that one, or listen elsewhere with --listen", e.Path)
}

// Check returns an *AddressError if Listen does not accept the address, and nil if Listen accepts
// it.
func Check(address string) error {
	scheme, rest, found := strings.Cut(address, "://")
	switch {
	case found && scheme == "unix":
		return checkSocket(address, rest)
	case found && scheme == "tcp":
		return checkLoopback(address, rest)
	}
	return &AddressError{address, "is neither unix:// nor tcp://"}
}

func checkSocket(address, path string) error {
	if !filepath.IsAbs(path) {
		return &AddressError{address, "is not an absolute path"}
	}
	if len(path) > longestSocket {
		return &AddressError{address, fmt.Sprintf("is longer than the %d bytes that a socket's path may have",
			longestSocket)}
	}
	return nil
}

// checkLoopback accepts only addresses, not names: other machines determine what a
// name resolves to.
func checkLoopback(address, hostPort string) error {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return &AddressError{address, "is not ADDRESS:PORT"}
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return &AddressError{address, "is not a loopback address: every client that can connect controls the node"}
	}
	return nil
}

// Listen listens at unix:///PATH or tcp://LOOPBACK:PORT. Only the owner can use a unix socket, from
// its first moment on. If the folder of the socket is missing, Listen makes that folder, which only
// the owner can enter. Listen replaces a socket that a dead process left.
func Listen(address string) (net.Listener, error) {
	if err := Check(address); err != nil {
		return nil, err
	}
	scheme, rest, _ := strings.Cut(address, "://")
	if scheme == "unix" {
		return listenSocket(rest)
	}
	listener, err := net.Listen("tcp", rest)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// Endpoint returns the address of a listener, as clients expect it.
func Endpoint(l net.Listener) string { return l.Addr().Network() + "://" + l.Addr().String() }

func listenSocket(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the socket's folder: %w", err)
	}
	lock := flock.New(path + ".lock")
	switch mine, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock the socket: %w", err)
	case !mine:
		return nil, &BusyError{path}
	}
	listener, err := bindPrivately(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), lock.Unlock())
	}
	return &socket{Listener: listener, path: path, lock: lock}, nil
}

// bindPrivately makes the socket in a folder that no other user can enter, and sets the socket's
// permissions there. It then renames the socket to path.
func bindPrivately(path string) (net.Listener, error) {
	folder, err := makeShortFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	temporary := filepath.Join(folder, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // Close would unlink the temporary name
	err = os.Chmod(temporary, 0o600)
	if err == nil {
		err = replaceSocket(temporary, path)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// makeShortFolder makes a folder for the owner alone, in which the socket is created. The folder's
// name is short, since the path of a socket is limited to few bytes. If the socket's final name has
// fewer than five letters, the temporary path is up to four bytes longer than the final path. Linux
// and Windows accept that many bytes beyond longestSocket.
func makeShortFolder(parent string) (string, error) {
	const letters, tries = "abcdefghijklmnopqrstuvwxyz0123456789", 1000
	for range tries {
		name := "." + string(letters[rand.IntN(len(letters))]) + string(letters[rand.IntN(len(letters))])
		folder := filepath.Join(parent, name)
		if err := os.Mkdir(folder, 0o700); !errors.Is(err, fs.ErrExist) {
			return folder, err
		}
	}
	return "", fmt.Errorf("%s is full of folders such as .ab; remove them", parent)
}

// replaceSocket gives a socket its new path. If a socket exists at the new path, replaceSocket
// replaces that socket; if a file of another kind exists there, it returns an error.
func replaceSocket(from, to string) error {
	if info, err := os.Lstat(to); err == nil && info.Mode()&os.ModeSocket == 0 {
		return errors.New("the existing file is not a socket; choose another path")
	}
	return os.Rename(from, to)
}

// socket is a unix socket under its final name.
type socket struct {
	net.Listener
	path string
	lock *flock.Flock

	mu sync.Mutex
}

func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close closes the listener and removes the socket. If another Close is under way, Close waits
// until that one has ended, and returns net.ErrClosed.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	// The lock's file stays: another proxy may already wait for the lock.
	return errors.Join(err, os.Remove(s.path), s.lock.Unlock())
}

package libvirt_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"

	"github.com/swdt-dev/swdt/internal/wait"
)

// program returns the path of a program. If it is missing, the test fails in CI, and is
// skipped elsewhere.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("needs %s: scripts/install-test-deps.sh installs it", name)
	}
	return path
}

// daemon is a libvirt of a test's own: its folders and its socket are the test's. It has
// libvirt's QEMU driver in session mode and libvirt's test driver, in which nothing runs.
type daemon struct {
	folder string
	cmd    *exec.Cmd
}

// startDaemon starts a daemon that ends with the test.
func startDaemon(t *testing.T) *daemon {
	t.Helper()
	folder, err := os.MkdirTemp("", "lv") // short, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d := &daemon{folder: folder}
	for _, name := range []string{"home", "run", "config", "cache", "data", "socket"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	settings := "unix_sock_dir = \"" + filepath.Join(folder, "socket") + "\"\nauth_unix_rw = \"none\"\n" +
		"auth_unix_ro = \"none\"\n"
	if err := os.WriteFile(filepath.Join(folder, "libvirtd.conf"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.stop(t) })
	d.start(t)
	return d
}

// start starts the process. Root gets a user namespace in which it is another user, since
// root's libvirt would use the machine's folders.
func (d *daemon) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(d.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	in := func(name string) string { return filepath.Join(d.folder, name) }
	d.cmd = exec.Command(program(t, "libvirtd"), "-f", in("libvirtd.conf"), "-p", in("pid"))
	d.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH") + ":/usr/sbin", "HOME=" + in("home"), "XDG_RUNTIME_DIR=" + in("run"),
		"XDG_CONFIG_HOME=" + in("config"), "XDG_CACHE_HOME=" + in("cache"), "XDG_DATA_HOME=" + in("data"),
	}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if os.Getuid() == 0 {
		other := []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
		d.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: other, GidMappings: other}
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "libvirtd listens", func() error {
		conn, err := net.Dial("unix", d.socket())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// stop ends the process.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // a daemon that has died is reported by Wait
	killing := time.AfterFunc(time.Minute, func() { _ = d.cmd.Process.Kill() })
	defer killing.Stop()
	var exit *exec.ExitError
	if err := d.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	d.cmd = nil
}

func (d *daemon) socket() string { return filepath.Join(d.folder, "socket", "libvirt-sock") }

// uri returns the URI of one of the daemon's drivers: test:///default, qemu:///session.
func (d *daemon) uri(driver string) string { return driver + "?socket=" + d.socket() }

// connect returns a connection to one of the daemon's drivers.
func (d *daemon) connect(t *testing.T, driver string) *golibvirt.Libvirt {
	t.Helper()
	rpc := golibvirt.NewWithDialer(dialers.NewLocal(dialers.WithSocket(d.socket())))
	if err := rpc.ConnectToURI(golibvirt.ConnectURI(driver)); err != nil {
		t.Fatalf("%v; the daemon's log: %s", err, d.log())
	}
	return rpc
}

func (d *daemon) log() string {
	text, err := os.ReadFile(filepath.Join(d.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// processes returns the processes whose command lines have a text.
func processes(t *testing.T, text string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), text) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func eventually(t *testing.T, what string, look func() error) {
	t.Helper()
	err := wait.Condition{
		Name: what, Interval: 10 * time.Millisecond, MaxInterval: time.Second, Limit: time.Minute,
		Look: func(context.Context) error { return look() },
	}.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

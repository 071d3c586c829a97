package qemu

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm"
)

// files is the folder of a VM. Its methods return the paths of the VM's files.
type files struct{ folder string }

func filesOf(m vm.Machine) files { return files{m.Folder} }

func (f files) in(name string) string { return filepath.Join(f.folder, name) }

func (f files) disk() string       { return f.in("disk.qcow2") }
func (f files) vars() string       { return f.in("vars.qcow2") }
func (f files) tpm() string        { return f.in("tpm") }
func (f files) made() string       { return f.in("qemu.json") }
func (f files) snapshots() string  { return f.in("snapshots") }
func (f files) serialLog() string  { return f.in("serial.log") }
func (f files) log() string        { return f.in("qemu.log") }
func (f files) tpmLog() string     { return f.in("tpm.log") }
func (f files) networkLog() string { return f.in("network.log") }
func (f files) vncSecret() string  { return filepath.Join(f.run(), "vnc-password") }
func (f files) lease() string      { return f.in("lease.lock") }
func (f files) run() string        { return f.in("run") }
func (f files) pid() string        { return filepath.Join(f.run(), "pid") }
func (f files) networkPID() string { return filepath.Join(f.run(), "network.pid") }
func (f files) started() string    { return filepath.Join(f.run(), "started.json") }

// all lists everything that the driver makes in a VM's folder, except for staging folders.
func (f files) all() []string {
	return []string{
		f.run(), f.snapshots(), f.vars(), f.tpm(), f.in(oldTPM), f.in(newTPM), f.made(),
		f.serialLog(), f.serialLog() + olderLog, f.log(), f.log() + olderLog, f.tpmLog(), f.tpmLog() + olderLog,
		f.networkLog(), f.networkLog() + olderLog,
		f.in("start.lock"), // of earlier versions
		f.lease(), f.disk(),
	}
}

// sockets are the paths of a running VM's sockets.
type sockets struct{ folder string }

func (s sockets) in(name string) string { return filepath.Join(s.folder, name) }

// control and look return the paths of two QMP sockets. The socket control is for the start, the
// stop, the reset and the snapshots of the VM, and for its observer. The socket look is for all
// other commands. There are two sockets since QEMU serves one client per socket, and a client of
// control may stay connected for minutes.
func (s sockets) control() string { return s.in("qmp.sock") }
func (s sockets) look() string    { return s.in("look.sock") }
func (s sockets) agent() string   { return s.in("qga.sock") }
func (s sockets) vnc() string     { return s.in("vnc.sock") }
func (s sockets) serial() string  { return s.in("serial.sock") }
func (s sockets) tpm() string     { return s.in("tpm.sock") }
func (s sockets) network() string { return s.in("net.sock") }

const (
	longestSocket = len("/serial.sock")
	// maxSocketPath bounds the path of a socket in bytes. Linux allows 107 bytes, macOS 103.
	maxSocketPath = 100
)

// makeSockets makes the folder of a VM's sockets, which only its owner can enter.
func makeSockets(m vm.Machine) (sockets, error) {
	run := filesOf(m).run()
	refused := errors.New("every folder for them has a path that is too long")
	for _, folder := range socketFolders(m) {
		if !fits(folder) {
			continue
		}
		if folder == run {
			return sockets{run}, nil // prepare has made this folder already
		}
		err := makePrivate(filepath.Dir(folder))
		if err == nil {
			err = makePrivate(folder)
		}
		if err == nil {
			return sockets{folder}, nil
		}
		refused = err
	}
	return sockets{}, fmt.Errorf("make the sockets of the VM: %w; set XDG_RUNTIME_DIR to a short folder of yours", refused)
}

// socketFolders lists the folders that a VM's sockets can be in, the best first. If sockets fit in
// run/, it lists only run/; if not, it lists folders with short paths in $XDG_RUNTIME_DIR and /tmp.
func socketFolders(m vm.Machine) []string {
	if run := filesOf(m).run(); fits(run) {
		return []string{run}
	}
	sum := sha256.Sum256([]byte(m.Folder))
	name := hex.EncodeToString(sum[:8])
	var folders []string
	for _, base := range shortFolders() {
		folders = append(folders, filepath.Join(base, name))
	}
	return folders
}

// fits reports whether QEMU and swtpm can take the paths of sockets in a folder: paths that are too
// long or have a comma do not fit.
func fits(folder string) bool {
	return len(folder)+longestSocket <= maxSocketPath && !strings.Contains(folder, ",")
}

// shortFolders lists the folders that may hold folders of sockets, the best first.
func shortFolders() []string {
	var folders []string
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		folders = append(folders, filepath.Join(run, "swdt"))
	}
	return append(folders, "/tmp/swdt-"+strconv.Itoa(os.Getuid()))
}

// makePrivate makes a folder that only this user can enter. It refuses a folder or a link that
// another user may have put at this path.
func makePrivate(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return private(path)
}

// owned makes a VM's folder, if it is missing, and denies other users access to the folder.
func owned(m vm.Machine) error {
	if !filepath.IsAbs(m.Folder) {
		return fmt.Errorf("its folder %q is no absolute path", m.Folder)
	}
	if err := os.MkdirAll(m.Folder, 0o700); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	if err := private(m.Folder); err == nil {
		return nil
	}
	if err := os.Chmod(m.Folder, 0o700); err != nil {
		return fmt.Errorf("keep other users out of the folder: %w", err)
	}
	if err := private(m.Folder); err != nil {
		return fmt.Errorf("keep other users out of the folder: %w", err)
	}
	return nil
}

// exists reports whether there is a file or folder at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

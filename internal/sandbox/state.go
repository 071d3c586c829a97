package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/wait"
)

// The files of a sandbox's folder.
const (
	requestFile   = "request.json" // the request of Up; marks a folder as a sandbox
	infoFile      = "sandbox.json" // the Info, once the server listens
	lockFile      = "lock"         // held by the server until it ends
	hostKeyFile   = "host_key"
	clientKeyFile = "client_key"
	nodeFile      = "node.yaml"
	logFile       = "log"
)

// pollInterval is the time between two checks of a lock that another process holds.
const pollInterval = 20 * time.Millisecond

// folder is the state folder of one sandbox.
type folder struct {
	path string
	name string
}

func folderOf(stateDir, name string) folder { return folder{filepath.Join(stateDir, name), name} }

func (f folder) file(name string) string { return filepath.Join(f.path, name) }

func (f folder) isSandbox() bool {
	_, err := os.Stat(f.file(requestFile))
	return err == nil
}

// request has the settings that Up passes to the background process.
type request struct {
	Name    string `json:"name"`
	Driver  string `json:"driver"`
	Shell   string `json:"shell,omitempty"`
	Port    int    `json:"port,omitempty"`
	Cluster bool   `json:"cluster,omitempty"`
	Pods    int    `json:"pods,omitempty"`

	KubeProxy bool `json:"kubeProxy,omitempty"`
}

// manage takes the lock that a caller must hold to start, end or clean this sandbox. The lock is a
// file beside the folder, since the folder itself is removed.
func (f folder) manage(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of sandboxes: %w", err)
	}
	lock := flock.New(f.path + ".lock")
	if _, err := lock.TryLockContext(ctx, pollInterval); err != nil {
		return nil, fmt.Errorf("wait for another swdt that manages sandbox %s: %w", f.name, err)
	}
	return func() { lock.Unlock() }, nil
}

// running returns the Info of a sandbox whose process is alive, else ErrNotRunning. If the sandbox
// is still starting because its Up was interrupted, running waits for it.
func (f folder) running(ctx context.Context) (Info, error) {
	var info Info
	err := wait.Condition{
		Name:     fmt.Sprintf("sandbox %s to run", f.name),
		Interval: pollInterval,
		Look: func(context.Context) error {
			alive, err := f.alive()
			if err != nil {
				return wait.Stop(err)
			}
			if !alive {
				return wait.Stop(fmt.Errorf("sandbox %s: %w", f.name, ErrNotRunning))
			}
			info, err = f.readInfo()
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return errStarting
			case err != nil:
				return wait.Stop(err)
			}
			return nil
		},
	}.Wait(ctx)
	return info, err
}

var errStarting = errors.New("it is starting")

// alive reports whether a process holds the server's lock.
func (f folder) alive() (bool, error) {
	if _, err := os.Stat(f.file(lockFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(f.file(lockFile))
	free, err := lock.TryLock()
	if err != nil {
		return false, fmt.Errorf("look whether sandbox %s runs: %w", f.name, err)
	}
	if free {
		lock.Unlock()
	}
	return !free, nil
}

// Ended returns the name of the sandbox that a node file or its key belongs to, if that sandbox has
// ended; else "". `swdt sandbox down` removes the sandbox's folder, and leaves the lock beside it.
func Ended(file string) string {
	path, err := filepath.Abs(file)
	if base := filepath.Base(path); err != nil || base != nodeFile && base != clientKeyFile {
		return ""
	}
	f := folder{filepath.Dir(path), filepath.Base(filepath.Dir(path))}
	_, missing := os.Stat(path)
	_, managed := os.Stat(f.path + ".lock")
	alive, err := f.alive()
	usual, unknown := DefaultStateDir()
	removed := errors.Is(missing, fs.ErrNotExist) &&
		(managed == nil || unknown == nil && usual == filepath.Dir(f.path))
	if err == nil && !alive && (removed || f.isSandbox()) {
		return f.name
	}
	return ""
}

// awaitEnd waits until no process holds the server's lock.
func (f folder) awaitEnd(ctx context.Context) error {
	return wait.Condition{
		Name:     fmt.Sprintf("sandbox %s to end", f.name),
		Interval: pollInterval,
		Look: func(context.Context) error {
			alive, err := f.alive()
			switch {
			case err != nil:
				return wait.Stop(err)
			case alive:
				return errors.New("its process still runs")
			}
			return nil
		},
	}.Wait(ctx)
}

func (f folder) readInfo() (Info, error) {
	var info Info
	err := readJSON(f.file(infoFile), &info)
	return info, err
}

// prepare creates a new folder with keys and the request.
func (f folder) prepare(ctx context.Context, o Options) error {
	driver, err := driverNamed(o.Driver)
	if err != nil {
		return err
	}
	asked := request{o.Name, o.Driver, o.Shell, o.Port, o.Cluster, o.Pods, o.KubeProxy}
	if err := driver.check(asked); err != nil {
		return err
	}
	if err := f.clean(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("make the sandbox's folder: %w", err)
	}
	for _, name := range []string{hostKeyFile, clientKeyFile} {
		_, pem, err := NewKey("swdt sandbox " + o.Name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.file(name), pem, 0o600); err != nil {
			return fmt.Errorf("write the sandbox's keys: %w", err)
		}
	}
	return writeJSON(f.file(requestFile), asked)
}

// clean removes the leftovers of a sandbox that does not run.
func (f folder) clean(ctx context.Context) error {
	if !f.isSandbox() {
		return nil
	}
	var asked request
	if err := readJSON(f.file(requestFile), &asked); err == nil {
		if driver, err := driverNamed(asked.Driver); err == nil {
			if err := driver.clean(ctx, f); err != nil {
				return fmt.Errorf("clean up sandbox %s: %w", f.name, err)
			}
		}
	}
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("remove the state of sandbox %s: %w", f.name, err)
	}
	return nil
}

// awaitReady reads the line that the background process prints once it listens.
func awaitReady(ctx context.Context, r *os.File) (Info, error) {
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	line, err := bufio.NewReader(r).ReadBytes('\n')
	var info Info
	switch {
	case ctx.Err() != nil:
		return info, ctx.Err()
	case errors.Is(err, io.EOF):
		return info, errors.New("its process ended before it listened")
	case err != nil:
		return info, err
	}
	return info, json.Unmarshal(line, &info)
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// writeJSON replaces the file atomically, so that no reader sees half of it.
func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := localfile.Replace(path, append(data, '\n')); err != nil {
		return fmt.Errorf("write the sandbox's state: %w", err)
	}
	return nil
}

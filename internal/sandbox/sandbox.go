package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/wait/lifetime"
)

const (
	// DefaultName is the name of the sandbox if the user gives none.
	DefaultName = "sandbox"
	// DefaultDriver needs nothing but swdt.
	DefaultDriver = "simulated"
	// MostPods bounds the pods of a simulated node; a real Windows node cannot run as many.
	MostPods = 1000
)

// ErrNotRunning is the error for a sandbox that does not run.
var ErrNotRunning = errors.New("no such sandbox runs")

// RequestError is the error for an option that is invalid whatever sandboxes run.
type RequestError struct{ text string }

func (e *RequestError) Error() string { return e.text }

func requestf(format string, args ...any) error { return &RequestError{fmt.Sprintf(format, args...)} }

// Options have the name of a sandbox and its settings. The zero value is the default sandbox.
type Options struct {
	Name     string // default: DefaultName; for Status, the default is all sandboxes
	Driver   string // simulated or wine; default: DefaultDriver
	StateDir string // holds one folder per sandbox; default: DefaultStateDir
	// Shell is the SSH server's default shell, a name of ShellNames; "": cmd.
	Shell string
	// Port is the port to listen on; 0 chooses a free port.
	Port int
	// Cluster also requests a control plane that the node can join.
	Cluster bool
	// KubeProxy also requests a stand-in for kube-proxy on a simulated node with a cluster.
	KubeProxy bool
	// Pods is the number of pods that run on a simulated node; default 1.
	Pods int
	// Executable is the swdt that runs in the background; default: this program.
	Executable string
}

// Info describes a running sandbox, in the form that `swdt sandbox up -o json` prints.
type Info struct {
	Name     string `json:"name"`
	Driver   string `json:"driver"`
	Hostname string `json:"hostname"` // host:port of the SSH server
	// Config is the path of a node file that works with -c without changes.
	Config string `json:"config"`
	// Prefix is the Wine prefix, if the sandbox has one.
	Prefix string `json:"prefix"`
	// Kubeconfig is the administrator's kubeconfig, if the sandbox has a cluster.
	Kubeconfig string `json:"kubeconfig"`
	// Pods is the number of pods, if the user requested one.
	Pods int `json:"pods"`
	// Shell is the default shell of the sandbox's SSH server, if the user requested one.
	Shell string `json:"shell"`
	// PID, Started and Log describe the background process.
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Log     string    `json:"log"`
}

// port returns the port of the sandbox's SSH server, or 0 if Hostname has none.
func (i Info) port() int {
	_, text, err := net.SplitHostPort(i.Hostname)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(text) // swdt wrote it
	return port
}

// DefaultStateDir returns the default folder for the state of sandboxes.
func DefaultStateDir() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "swdt", "sandbox"), nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		folder, err := localfile.CacheFolder() // %LocalAppData% or ~/Library/Caches
		if err != nil {
			return "", fmt.Errorf("find a folder for the sandbox: %w; use --state-dir", err)
		}
		return filepath.Join(folder, "swdt", "sandbox"), nil
	}
	home, err := localfile.Home()
	if err != nil {
		return "", fmt.Errorf("find a folder for the sandbox: %w; use --state-dir", err)
	}
	return filepath.Join(home, ".local", "state", "swdt", "sandbox"), nil
}

func (o Options) complete() (Options, error) {
	if o.Driver == "" {
		o.Driver = DefaultDriver
	}
	if o.StateDir == "" {
		folder, err := DefaultStateDir()
		if err != nil {
			return o, err
		}
		o.StateDir = folder
	}
	absolute, err := filepath.Abs(o.StateDir)
	if err != nil {
		return o, fmt.Errorf("find the folder of sandboxes: %w", err)
	}
	o.StateDir = absolute
	return o, nil
}

func (o Options) validate() error {
	if err := checkName(o.Name); err != nil {
		return err
	}
	if _, err := parseShell(o.Shell, ""); err != nil {
		return requestf("%v", err)
	}
	if o.Port < 0 || o.Port > 65535 {
		return requestf("port %d: use 0 to 65535", o.Port)
	}
	if o.Pods < 0 || o.Pods > MostPods {
		return requestf("%d pods: use 1 to %d", o.Pods, MostPods)
	}
	_, err := driverNamed(o.Driver)
	return err
}

func checkName(name string) error {
	if !validName(name) {
		return requestf("sandbox name %q: use letters, digits, - and _", name)
	}
	return nil
}

func validName(name string) bool {
	ok := func(r rune) bool {
		return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return name != "" && len(name) <= 63 && name[0] != '-' && strings.IndexFunc(name, func(r rune) bool {
		return !ok(r)
	}) < 0
}

// Up starts a sandbox, waits until its SSH server answers, and returns its Info. It does not change
// a sandbox that is already running.
func Up(ctx context.Context, o Options) (Info, error) {
	o, err := o.complete()
	if err != nil {
		return Info{}, err
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if err := o.validate(); err != nil {
		return Info{}, err
	}
	f := folderOf(o.StateDir, o.Name)
	unlock, err := f.manage(ctx)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	if info, err := f.existing(ctx, o); !errors.Is(err, ErrNotRunning) {
		return info, err
	}
	if err := f.prepare(ctx, o); err != nil {
		return Info{}, err
	}
	info, err := f.launch(ctx, o)
	if err != nil {
		return Info{}, err
	}
	return info, f.answers(ctx, info)
}

// existing returns the running sandbox. It returns ErrNotRunning if the sandbox does not
// run, and another error if it runs with other settings than o.
func (f folder) existing(ctx context.Context, o Options) (Info, error) {
	info, err := f.running(ctx)
	if err != nil {
		return Info{}, err
	}
	down := fmt.Sprintf("end it with `swdt sandbox down %s`", f.name)
	if info.Driver != o.Driver {
		return Info{}, fmt.Errorf("sandbox %s runs already, with driver %s: %s, or use another --name", f.name,
			info.Driver, down)
	}
	if o.Cluster && info.Kubeconfig == "" {
		return Info{}, fmt.Errorf("sandbox %s runs already, without a cluster: %s, or use another --name", f.name, down)
	}
	if o.Pods != 0 && o.Pods != info.Pods {
		return Info{}, fmt.Errorf("sandbox %s runs already, with other pods: %s, or use another --name", f.name, down)
	}
	if o.Port != 0 && o.Port != info.port() {
		return Info{}, fmt.Errorf("sandbox %s runs already, on port %d: %s, or use another --name", f.name,
			info.port(), down)
	}
	if o.Shell != "" && o.Shell != cmp.Or(info.Shell, string(shellCmd)) {
		return Info{}, fmt.Errorf("sandbox %s runs already, with shell %s: %s, or use another --name", f.name,
			cmp.Or(info.Shell, string(shellCmd)), down)
	}
	if err := f.answers(ctx, info); err != nil {
		// The sandbox may just have ended.
		if _, gone := f.running(ctx); errors.Is(gone, ErrNotRunning) {
			return Info{}, gone
		}
		return Info{}, fmt.Errorf("%w; %s", err, down)
	}
	return info, nil
}

// Status lists the running sandboxes, sorted by name: only the sandbox that o names, or all below
// the state folder if o has no name. It cleans up after crashed sandboxes.
func Status(ctx context.Context, o Options) ([]Info, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	names := []string{o.Name}
	if o.Name == "" {
		names, err = sandboxesIn(o.StateDir)
	} else {
		err = checkName(o.Name)
	}
	if err != nil {
		return nil, err
	}
	list := []Info{}
	for _, name := range names {
		info, err := status(ctx, folderOf(o.StateDir, name))
		if errors.Is(err, ErrNotRunning) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// Running lists the running sandboxes of the default folder, sorted by name. It neither waits nor
// cleans up, and returns none if it cannot read the folder.
func Running() []Info {
	stateDir, err := DefaultStateDir()
	if err != nil {
		return nil
	}
	names, err := sandboxesIn(stateDir)
	if err != nil {
		return nil
	}
	var list []Info
	for _, name := range names {
		f := folderOf(stateDir, name)
		if alive, err := f.alive(); err != nil || !alive {
			continue
		}
		if info, err := f.readInfo(); err == nil {
			list = append(list, info)
		}
	}
	return list
}

func status(ctx context.Context, f folder) (Info, error) {
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		return Info{}, ErrNotRunning
	}
	unlock, err := f.manage(ctx)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	info, err := f.running(ctx)
	if errors.Is(err, ErrNotRunning) {
		return Info{}, errors.Join(err, f.clean(ctx))
	}
	return info, err
}

func sandboxesIn(stateDir string) ([]string, error) {
	entries, err := os.ReadDir(stateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && validName(entry.Name()) && folderOf(stateDir, entry.Name()).isSandbox() {
			names = append(names, entry.Name())
		}
	}
	slices.SortFunc(names, natural.Compare)
	return names, nil
}

// Down ends a sandbox and removes its state. It also removes the state that a crashed sandbox
// left behind. It returns ErrNotRunning if there is no such state.
func Down(ctx context.Context, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	f := folderOf(o.StateDir, o.Name)
	if err := checkName(o.Name); err != nil {
		return err
	}
	if !f.isSandbox() {
		return fmt.Errorf("sandbox %s: %w", o.Name, ErrNotRunning)
	}
	unlock, err := f.manage(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.stop(ctx); err != nil {
		return err
	}
	return f.clean(ctx)
}

// launch starts the background process and waits until it reports that it is ready.
func (f folder) launch(ctx context.Context, o Options) (Info, error) {
	executable := o.Executable
	if executable == "" {
		self, err := os.Executable()
		if err != nil {
			return Info{}, fmt.Errorf("find swdt's own executable: %w", err)
		}
		executable = self
	}
	log, err := os.OpenFile(f.file(logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Info{}, fmt.Errorf("start the sandbox: %w", err)
	}
	defer log.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return Info{}, fmt.Errorf("start the sandbox: %w", err)
	}
	defer reader.Close()
	cmd := exec.Command(executable, "sandbox", "serve", "--state", f.path)
	cmd.Stdout, cmd.Stderr = writer, log
	cmd.Dir = filepath.VolumeName(f.path) + string(filepath.Separator)
	lifetime.Outlive(cmd)
	err = cmd.Start()
	writer.Close()
	if err != nil {
		return Info{}, fmt.Errorf("start the sandbox: %w", err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }() // Wait, so that no zombie is left if the caller keeps running
	info, err := awaitReady(ctx, reader)
	if err != nil {
		cmd.Process.Kill()
		<-exited
		return Info{}, errors.Join(f.describe(err), f.clean(context.WithoutCancel(ctx)))
	}
	return info, nil
}

// describe adds the end of the log to the error of the background process.
func (f folder) describe(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("start the sandbox: %w", err)
	}
	text, readErr := os.ReadFile(f.file(logFile))
	text = bytes.TrimSpace(text)
	if readErr != nil || len(text) == 0 {
		return fmt.Errorf("start the sandbox: %w", err)
	}
	const most = 2000
	return fmt.Errorf("start the sandbox: %w; it said: %s", err, text[max(0, len(text)-most):])
}

package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// HealthAddress is the address at which a running kubelet serves /healthz.
	HealthAddress = "127.0.0.1:10248"
	// ContainerdPipe is the pipe at which a running containerd serves CRI.
	ContainerdPipe = `\\.\pipe\containerd-containerd`

	kubeletLog     = `C:\var\log\kubelet\kubelet.log`
	containerdRev  = "64b8a811b07ba6288238eefc14d898ee0b5b99ba"
	logLimit       = 1 << 20
	unknownVersion = "v0.0.0-unknown"
)

// builtinProgram returns the program for every executable without a registered program: the node's
// components, Windows' own commands, and any other executable. As a service, any other executable
// runs and does nothing.
func builtinProgram(architecture string) Program {
	return Program{
		Name:  "built-in",
		Match: func(image *Image) bool { return image.runsOn(architecture) },
		Main: func(ctx context.Context, p *Process) int {
			if command, ok := builtinCommands()[p.image.Name]; ok && p.Service == nil {
				return command(ctx, p)
			}
			return component{p: p, name: p.image.Name, version: p.image.Version, fault: p.image.Fault}.main(ctx)
		},
	}
}

// component is one run of kubelet, containerd, kubeadm or another program of a node.
type component struct {
	p             *Process
	name, version string
	fault         Fault
}

func (c component) main(ctx context.Context) int {
	if c.version == "" {
		c.version = unknownVersion
	}
	switch {
	case c.name == "kube-log-runner":
		return logRunnerMain(ctx, c.p, c.version)
	case c.name == "host-local":
		return hostLocalMain(c.p)
	case c.name == "nssm":
		return nssmMain(ctx, c.p)
	case slices.Contains(c.p.Args, "--version") || slices.Contains(c.p.Args, "-v") && c.name == "containerd":
		fmt.Fprintln(c.p.Stdout, c.versionText())
		return 0
	case c.name == "containerd" && slices.Contains(c.p.Args, "config"):
		return c.containerdConfig()
	case c.name == "kubeadm":
		return c.kubeadm(ctx)
	case c.p.Service != nil:
		return c.service(ctx)
	case c.name == "kubelet" || c.name == "containerd" || c.name == "kube-proxy":
		return c.foreground(ctx)
	}
	return 0
}

// versionText returns the version that the program prints, in the form of the real program.
func (c component) versionText() string {
	switch c.name {
	case "kubelet", "kube-proxy":
		return "Kubernetes " + c.version
	case "containerd":
		return "containerd github.com/containerd/containerd " + c.version + " " + containerdRev
	case "crictl":
		return "crictl version " + c.version
	}
	return c.name + " " + c.version
}

// check runs the checks that the component makes before it reports to the SCM.
func (c component) check() error {
	switch c.name {
	case "kubelet":
		return c.checkKubelet()
	case "kube-proxy":
		return c.checkKubeProxy()
	case "containerd":
		_, err := c.loadContainerdConfig()
		return err
	}
	return nil
}

// refused ends the component because of an error of its check, with the exit code and the last words of the real one.
func (c component) refused(err error) int {
	var panicked *panicError
	if errors.As(err, &panicked) {
		c.print(panicked.trace(c.version))
		return 2
	}
	c.log("E", "command failed", "err", err.Error())
	return 1
}

// foreground runs the component as a program that a terminal or a wrapper starts, with the faults of its
// executable that do not concern the SCM.
func (c component) foreground(ctx context.Context) int {
	if c.fault == CrashAtStart || c.fault == CrashStarted {
		c.log("E", "command failed", "err", "simulated fault: "+string(c.fault))
		return 1
	}
	if err := c.check(); err != nil {
		return c.refused(err)
	}
	stop, err := c.serve()
	if err != nil {
		c.log("E", "command failed", "err", err.Error())
		return 1
	}
	defer stop()
	after, ends := c.fault.duration("exit-after")
	if ends && wait.For(ctx, after) == nil {
		c.log("F", "simulated fault: exit after a while")
		return 255
	}
	<-ctx.Done()
	return 0
}

// service runs the component as a service, with the fault of its executable.
func (c component) service(ctx context.Context) int {
	control, m := c.p.Service, c.p.p.m
	c.log("I", "starting", "version", c.version)
	switch c.fault {
	case CrashAtStart:
		c.log("E", "command failed", "err", "simulated fault: crash at start")
		return 1
	case HangAtStart:
		<-ctx.Done()
		return 1
	}
	if err := c.check(); err != nil {
		return c.refused(err)
	}
	control.Connect()
	if wait.For(ctx, c.startDelay()) != nil {
		return 1
	}
	if c.fault == CrashStarted {
		c.log("E", "command failed", "err", "simulated fault: crash while starting")
		return 1
	}
	unserve, err := c.serve()
	if err != nil {
		c.log("E", "command failed", "err", err.Error())
		return 1
	}
	defer unserve()
	if c.name == "kubelet" {
		// As Kubernetes' pkg/windows/service does with WindowsGracefulNodeShutdown, which is on by default since 1.34.
		control.AcceptPreshutdown()
	}
	if c.fault == HangInHandler {
		control.HangInHandler()
	}
	control.Running()
	c.log("I", "started", "pid", fmt.Sprint(c.p.PID()))
	if c.debugs() {
		c.log("D", "serving", "args", strings.Join(c.p.Args, " "))
	}
	var end <-chan time.Time
	if after, ok := c.fault.duration("exit-after"); ok {
		timer := time.NewTimer(after)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-ctx.Done():
		return 1
	case <-end:
		c.log("F", "simulated fault: exit after a while")
		return 255
	case <-control.StopRequested():
	}
	if c.fault == HangOnStop {
		c.log("W", "simulated fault: stop is ignored")
		<-ctx.Done()
		return 1
	}
	if wait.For(ctx, m.options.StopDelay) != nil {
		return 1
	}
	unserve()
	c.log("I", "stopped")
	control.Stopped(0, 0)
	return 0
}

func (c component) startDelay() time.Duration {
	if slow, ok := c.fault.duration("slow-start"); ok {
		return slow
	}
	c.p.p.m.mu.Lock()
	defer c.p.p.m.mu.Unlock()
	return c.p.p.m.startDelay()
}

// serve opens the endpoints that the real component serves.
func (c component) serve() (stop func(), err error) {
	switch c.name {
	case "kubelet":
		return c.serveKubelet()
	case "kube-proxy":
		return c.serveKubeProxy()
	case "containerd":
		return c.serveCRI()
	}
	return func() {}, nil
}

func (c component) serveHealth() (func(), error) {
	runtime, m := c.runtimePipe(), c.p.p.m
	err := c.p.HandleHTTP(HealthAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		served := m.pipes[pipeKey(runtime)] != nil
		m.mu.Unlock()
		switch {
		case r.URL.Path != "/healthz":
			w.WriteHeader(http.StatusNotFound)
		case c.fault == Unhealthy:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "[-]syncloop failed: reason withheld\nhealthz check failed\n")
		case !served:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "[-]runtime failed: %s is not served\nhealthz check failed\n", runtime)
		default:
			fmt.Fprint(w, "ok")
		}
	}))
	if err != nil {
		return nil, err
	}
	return func() { c.p.p.stopListening(HealthAddress) }, nil
}

// runtimePipe returns the pipe at which a kubelet expects its container
// runtime.
func (c component) runtimePipe() string { return pipeOf(c.flag("--container-runtime-endpoint")) }

// pipeOf returns the pipe of an endpoint such as npipe:////./pipe/containerd-containerd. If the
// endpoint is empty, pipeOf returns containerd's default pipe.
func pipeOf(endpoint string) string {
	if pipe := strings.TrimPrefix(strings.ReplaceAll(endpoint, "/", `\`), `npipe:\\`); pipe != "" {
		return `\\` + strings.TrimLeft(pipe, `\`)
	}
	return ContainerdPipe
}

// flag returns the value of --name value or --name=value, or "" if neither is present.
func (c component) flag(name string) string {
	for i, arg := range c.p.Args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
		if arg == name && i+1 < len(c.p.Args) {
			return c.p.Args[i+1]
		}
	}
	return ""
}

// log appends a line to the component's log file, or prints it on stderr if the component has no
// log file. The format is that of klog or, for containerd, of logrus. The write is not recorded as
// an operation, because tests enumerate swdt's operations, not a kubelet's logging.
func (c component) log(level, message string, pairs ...string) {
	line := c.klog(level, message, pairs)
	if c.name == "containerd" {
		line = logrus(level, message, pairs)
	}
	c.print(line)
}

// print writes text as log does.
func (c component) print(line string) {
	path := strings.ReplaceAll(c.flag("--log-file"), "/", `\`)
	if strings.HasPrefix(path, `\`) {
		path = systemDrive + path
	}
	// A kubelet logs to stderr. Without a program that writes that to a file, this one writes its usual file, so that
	// a sandbox has a log.
	if path == "" && c.name == "kubelet" && !c.p.logged() {
		path = kubeletLog
	}
	if path == "" {
		fmt.Fprint(c.p.Stderr, line)
		return
	}
	c.p.p.m.appendLog(path, line)
}

// debugs reports whether the component logs debug messages.
func (c component) debugs() bool {
	switch c.name {
	case "containerd":
		settings, err := c.loadContainerdConfig()
		level := cmp.Or(c.flag("--log-level"), c.flag("-l"), settings.logLevel)
		return err == nil && (level == "debug" || level == "trace")
	case "kubelet":
		verbosity, err := strconv.Atoi(c.flag("--v"))
		return err == nil && verbosity >= 4
	}
	return false
}

func (c component) klog(level, message string, pairs []string) string {
	if level == "D" { // klog marks debug messages only by their verbosity; their letter is I
		level = "I"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s %7d server.go:210] %q", level, time.Now().UTC().Format("0102 15:04:05.000000"),
		c.p.PID(), message)
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, " %s=%q", pairs[i], pairs[i+1])
	}
	return b.String() + "\n"
}

func logrus(level, message string, pairs []string) string {
	var b strings.Builder
	name := map[string]string{"D": "debug", "I": "info", "W": "warning", "E": "error", "F": "fatal"}[level]
	fmt.Fprintf(&b, "time=%q level=%s msg=%q", time.Now().UTC().Format(time.RFC3339Nano), name, message)
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, " %s=%q", pairs[i], pairs[i+1])
	}
	return b.String() + "\n"
}

// appendLog appends as much of a line to a file as fits on the disk.
func (m *Machine) appendLog(path, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts, _, err := splitPath(path)
	if err != nil || len(parts) == 0 {
		return
	}
	if m.disk.makeFolder(system(), systemDrive+`\`+strings.Join(parts[:len(parts)-1], `\`)) != nil {
		return
	}
	folder, name, err := m.disk.slot(path)
	if err != nil {
		return
	}
	f := folder.children[fold(name)]
	if f == nil {
		if m.disk.readOnly {
			return
		}
		if f, err = m.disk.create(system(), folder, name, false, ""); err != nil {
			return
		}
	}
	if f.folder {
		return
	}
	if f.content.size > logLimit {
		m.disk.truncate(f, 0)
	}
	_, _ = m.disk.write(f, []byte(line))
	f.synced = f.content.size
}

// Command service is a Windows service that acts as a Kubernetes component: it answers
// --version as the component does, serves /healthz, writes a klog-like log, and fails
// in the way that its build flags name:
//
//	go build -ldflags "-X main.name=kubelet -X main.version=v1.29.0 -X main.fault=crash-at-start"
//
// Faults: crash-at-start (before it answers the Service Control Manager),
// crash-starting (after it has answered), hang-at-start, exit-after=2s, hang-on-stop,
// unhealthy, slow-start=3s.
// The simulated Windows reads the same settings from the executable's build
// information, so one binary works in the simulated Windows, under Wine and on Windows.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Set by -ldflags -X.
var (
	name    = "kubelet"
	version = "v1.29.0"
	fault   = ""
)

func main() {
	options := parse(os.Args[1:])
	if options.version {
		fmt.Println(versionLine(name, version))
		return
	}
	if err := run(options); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(options options) error {
	behaviour, err := parseFault(fault)
	if err != nil {
		return err
	}
	c := &component{options: options, behaviour: behaviour, log: io.Discard}
	if err := c.early(); err != nil {
		return err
	}
	if !options.foreground {
		if err := c.service(); !errors.Is(err, errNotService) {
			return err
		}
	}
	return c.foreground()
}

var errNotService = errors.New("this is not a service's process")

// options are the flags that have an effect. The program ignores all other flags of the
// component.
type options struct {
	version     bool
	foreground  bool // --windows-service=false: do not look for the SCM, which takes Wine ten seconds below a service
	logFile     string
	healthzPort string
}

func parse(args []string) options {
	o := options{healthzPort: "10248"}
	values := map[string]*string{"log-file": &o.logFile, "healthz-port": &o.healthzPort}
	for i, arg := range args {
		flag, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		target := values[flag]
		switch {
		case flag == "version":
			o.version = true
		case flag == "windows-service":
			o.foreground = value == "false"
		case target != nil && hasValue:
			*target = value
		case target != nil && i+1 < len(args):
			*target = args[i+1]
		}
	}
	return o
}

// versionLine returns the line that the real component prints for --version.
func versionLine(name, version string) string {
	switch name {
	case "kubelet", "kube-proxy":
		return "Kubernetes " + version
	case "containerd":
		return "containerd github.com/containerd/containerd " + version + " 0000000000000000000000000000000000000000"
	}
	return name + " " + version
}

// behaviour is a parsed fault.
type behaviour struct {
	crash, crashStarting, hangAtStart, hangOnStop, unhealthy bool
	exitAfter, slowStart                                     time.Duration
}

func parseFault(text string) (behaviour, error) {
	var b behaviour
	var err error
	kind, value, _ := strings.Cut(text, "=")
	switch kind {
	case "":
	case "crash-at-start":
		b.crash = true
	case "crash-starting":
		b.crashStarting = true
	case "hang-at-start":
		b.hangAtStart = true
	case "hang-on-stop":
		b.hangOnStop = true
	case "unhealthy":
		b.unhealthy = true
	case "exit-after":
		b.exitAfter, err = time.ParseDuration(value)
	case "slow-start":
		b.slowStart, err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("unknown fault %q", text)
	}
	return b, err
}

// component is one run of the program.
type component struct {
	options   options
	behaviour behaviour
	log       io.Writer
}

// early misbehaves before the program has answered the Service Control Manager.
func (c *component) early() error {
	switch {
	case c.behaviour.crash:
		// Write the error to the log if possible, since users look for errors there.
		if err := c.openLog(); err == nil {
			c.logf('E', "run.go", "%q err=%q", "command failed", "failed to run "+title(name)+
				": made to crash at start")
		}
		return errors.New("made to crash at start")
	case c.behaviour.hangAtStart:
		select {}
	}
	return nil
}

// start does the work before the component counts as started.
func (c *component) start(ctx context.Context) error {
	c.logf('I', "server.go", "%q %sVersion=%q", title(name)+" version", name, version)
	if c.behaviour.crashStarting {
		c.logf('E', "run.go", "%q err=%q", "command failed", "failed to run "+title(name)+
			": made to crash while starting")
		return errors.New("made to crash while starting")
	}
	select {
	case <-time.After(c.behaviour.slowStart):
	case <-ctx.Done():
		return ctx.Err()
	}
	c.serveHealthz(ctx)
	if c.behaviour.exitAfter > 0 {
		time.AfterFunc(c.behaviour.exitAfter, func() {
			c.logf('F', "server.go", "made to exit after %s", c.behaviour.exitAfter)
			os.Exit(255)
		})
	}
	c.logf('I', "server.go", "%q", "Started "+name)
	return nil
}

// serveHealthz logs and continues if the port is in use, as kubelet does.
func (c *component) serveHealthz(ctx context.Context) {
	if c.options.healthzPort == "0" {
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+c.options.healthzPort)
	if err != nil {
		c.logf('E', "server.go", "%q err=%q", "Failed to start healthz server", err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if c.behaviour.unhealthy {
			http.Error(w, "[+]ping ok\n[-]syncloop failed: made to be unhealthy\nhealthz check failed",
				http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "ok")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go server.Serve(listener)
}

// openLog makes the log file and its folder.
func (c *component) openLog() error {
	path := c.options.logFile
	if path == "" {
		path = defaultLog()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	c.log = file
	return nil
}

func (c *component) logf(severity byte, file, format string, args ...any) {
	now := time.Now()
	fmt.Fprintf(c.log, "%c%s %7d %s:1] %s\n", severity, now.Format("0102 15:04:05.000000"),
		os.Getpid(), file, fmt.Sprintf(format, args...))
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

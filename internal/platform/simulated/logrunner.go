package simulated

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// logRunnerMain imitates kube-log-runner: it runs another program and writes its
// output to a log file (kubernetes/kubernetes, staging/src/k8s.io/component-base/logs/kube-log-runner, whose flags are
// log-file, also-stdout and redirect-stderr; v0.34.0 is the first with log-file-size, log-file-age and flush-interval,
// which v0.33.0 refuses as Go's package flag does). In a service, the child reports to the SCM, as on the nodes of
// cluster/gce/windows/k8s-node-setup.psm1; Windows logs event 7039 for such a process. The process of the service stays
// the runner here: that the SCM reports its PID is a guess, docs/guesses.md.
func logRunnerMain(ctx context.Context, p *Process, version string) int {
	log, args := &rotatedLog{m: p.p.m}, p.Args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, ok := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		args = args[1:]
		if !ok && name != "also-stdout" && name != "redirect-stderr" && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if err := log.set(name, value, version); err != nil {
			fmt.Fprintln(p.Stderr, err)
			return 2
		}
	}
	if len(args) == 0 {
		fmt.Fprintln(p.Stderr, "not enough arguments to run")
		return 1
	}
	out := p.Stdout
	if log.path != "" {
		out = log
	}
	child, err := p.p.m.execute(p.p.ctx, execution{
		path: args[0], args: args[1:], folder: p.Folder, environment: p.Environment, parent: p.p,
		outlives: true, inherited: p.Service, stdin: p.Stdin, stdout: out, stderr: out,
	})
	if err != nil {
		fmt.Fprintf(out, "exec: %v\n", err)
		return 1
	}
	select {
	case <-child.ctx.Done():
	case <-ctx.Done():
		return 1
	}
	p.p.m.mu.Lock()
	defer p.p.m.mu.Unlock()
	return int(child.exitCode)
}

// logged reports whether another program writes what this one writes to stderr into a log file.
func (p *Process) logged() bool {
	wrapped, ok := p.Stderr.(mortal)
	if !ok {
		return false
	}
	_, ok = wrapped.Writer.(*rotatedLog)
	return ok
}

// rotatedLog appends to a file of the machine. It renames the file once it has size bytes, and removes the renamed
// files that were last written longer than age ago. (component-base v0.36.3,
// logs/kube-log-runner/internal/logrotation)
type rotatedLog struct {
	m    *Machine
	path string
	size int64         // 0: never
	age  time.Duration // 0: for ever

	mu      sync.Mutex
	written int64
	parts   []logPart // oldest first
}

type logPart struct {
	path string
	at   time.Time
}

// set sets a flag of kube-log-runner, whose version refuses those that it lacks.
func (l *rotatedLog) set(name, value, version string) (err error) {
	switch name {
	case "also-stdout", "redirect-stderr":
		return nil
	case "log-file":
		l.path = windowsPath(value)
		return nil
	}
	_, minor := versionNumbers(version)
	if version != unknownVersion && minor < 34 {
		return fmt.Errorf("flag provided but not defined: -%s", name)
	}
	switch name {
	case "log-file-size":
		quantity, err := resource.ParseQuantity(value)
		l.size = quantity.Value()
		return err
	case "log-file-age":
		l.age, err = time.ParseDuration(value)
		return err
	case "flush-interval":
		return nil
	}
	return fmt.Errorf("flag provided but not defined: -%s", name)
}

func (l *rotatedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m.appendLog(l.path, string(b))
	if l.written += int64(len(b)); l.size > 0 && l.written >= l.size {
		l.rotate(time.Now())
	}
	return len(b), nil
}

func (l *rotatedLog) rotate(now time.Time) {
	content, err := l.m.ReadFile(l.path)
	if err != nil {
		return
	}
	dot := strings.LastIndex(l.path, ".")
	part := l.path[:dot] + "-" + now.Format("20060102-150405") + l.path[dot:]
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.m.putFile(part, content)
	l.m.putFile(l.path, nil)
	l.written, l.parts = 0, append(l.parts, logPart{part, now})
	for l.age > 0 && now.Sub(l.parts[0].at) > l.age {
		if folder, name, err := l.m.disk.slot(l.parts[0].path); err == nil {
			delete(folder.children, fold(name))
		}
		l.parts = l.parts[1:]
	}
}

package simulated

import (
	"context"
	"fmt"
	"strings"
)

// logRunnerMain imitates kube-log-runner: it runs another program and writes its
// output to a log file (kubernetes/kubernetes, staging/src/k8s.io/component-base/logs/kube-log-runner, whose flags are
// log-file, also-stdout and redirect-stderr). In a service, the child reports to the SCM, as on the nodes of
// cluster/gce/windows/k8s-node-setup.psm1; Windows logs event 7039 for such a process. The process of the service stays
// the runner here: that the SCM reports its PID is a guess, docs/guesses.md.
func logRunnerMain(ctx context.Context, p *Process) int {
	logFile, args := "", p.Args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, ok := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		args = args[1:]
		if !ok && name != "also-stdout" && name != "redirect-stderr" && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if name == "log-file" {
			logFile = windowsPath(value)
		}
	}
	if len(args) == 0 {
		fmt.Fprintln(p.Stderr, "not enough arguments to run")
		return 1
	}
	out := p.Stdout
	if logFile != "" {
		out = logWriter{p.p.m, logFile}
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

// logWriter appends to a file of the machine.
type logWriter struct {
	m    *Machine
	path string
}

func (w logWriter) Write(b []byte) (int, error) {
	w.m.appendLog(w.path, string(b))
	return len(b), nil
}

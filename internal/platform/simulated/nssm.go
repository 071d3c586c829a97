package simulated

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// nssmMain imitates nssm 2.24-101 as a service: it runs the program of the service's key Parameters,
// which knows nothing of the SCM, and starts it again after its end. e2e/nssm_test.go has what the
// real nssm does. https://nssm.cc/usage. nssm ends the processes of its program at a stop only; killed, it leaves them
// (no job: nssm's process.cpp, kill_process_tree).
func nssmMain(ctx context.Context, p *Process) int {
	if p.Service == nil {
		fmt.Fprintln(p.Stdout, "NSSM: The non-sucking service manager")
		return 1
	}
	return nssm{p, `HKLM\SYSTEM\CurrentControlSet\Services\` + p.Service.Name + `\Parameters`}.run(ctx)
}

type nssm struct {
	p   *Process
	key string
}

// errorCreateProcess is the service's own exit code if nssm cannot start the program.
const errorCreateProcess = 3

// run starts the program until the service is stopped. The service counts as started when the program has
// run for AppThrottle, or has ended. A program that ended earlier is started again after a pause, which
// doubles each time; the service is paused meanwhile.
func (n nssm) run(ctx context.Context) int {
	for ended := 0; ; {
		if ended > 0 {
			n.p.Service.Paused()
			if n.stopped(ctx, time.Second<<min(ended, 7)) {
				return n.end(0)
			}
		}
		n.p.Service.StartPending()
		child, err := n.start()
		if err != nil {
			return n.end(errorCreateProcess)
		}
		ended++
		if n.wait(ctx, child, n.throttle()) {
			ended = 0
		}
		n.p.Service.Running()
		if n.wait(ctx, child, forever) {
			if n.p.image.Fault == HangOnStop {
				<-ctx.Done()
			}
			if ctx.Err() != nil {
				return exitKilled // a killed nssm ends nothing any more
			}
			child.kill(exitKilled)
			return n.end(0)
		}
		switch exit, _ := n.p.Platform.Registry.Get(n.key+`\AppExit`, ""); exit.String {
		case "Ignore":
			n.stopped(ctx, forever)
			return n.end(0)
		case "Exit":
			return n.end(int(child.exitCode))
		}
	}
}

// forever is longer than any test.
const forever = 1000 * time.Hour

// throttle is the time that the program must run to count as started.
func (n nssm) throttle() time.Duration {
	value, err := n.p.Platform.Registry.Get(n.key, "AppThrottle")
	if err != nil {
		return 1500 * time.Millisecond
	}
	return time.Duration(value.Integer) * time.Millisecond
}

// wait waits for the program's end, and reports whether the program still ran at the end of the time or at
// the stop of the service.
func (n nssm) wait(ctx context.Context, child *process, limit time.Duration) (ran bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-child.ctx.Done():
		return false
	case <-timer.C:
	case <-n.p.Service.StopRequested():
	case <-ctx.Done():
	}
	return true
}

// stopped waits, and reports whether the service was stopped meanwhile.
func (n nssm) stopped(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-n.p.Service.StopRequested():
		return true
	case <-ctx.Done():
		return false
	}
}

// end reports the end of the service with its own exit code.
func (n nssm) end(specific int) int {
	_ = wait.For(n.p.p.ctx, n.p.p.m.options.StopDelay)
	if specific != 0 {
		n.p.Service.Stopped(errorServiceSpecific, uint32(specific))
	} else {
		n.p.Service.Stopped(0, 0)
	}
	return specific
}

// start starts the program in the service's environment.
func (n nssm) start() (*process, error) {
	program := n.text("Application")
	line := commandline.Split(`"` + strings.Trim(program, `"`) + `" ` + n.text("AppParameters"))
	return n.p.p.m.execute(n.p.p.ctx, execution{
		path: line[0], args: line[1:], folder: n.text("AppDirectory"), environment: n.environment(), parent: n.p.p,
		outlives: true,
		stdout:   n.file("AppStdout", n.p.Stdout), stderr: n.file("AppStderr", n.p.Stderr),
	})
}

// text returns a value of the settings. nssm expands variables of the type REG_EXPAND_SZ alone, its own
// variables AppEnvironment and AppEnvironmentExtra among them.
func (n nssm) text(name string) string {
	value, err := n.p.Platform.Registry.Get(n.key, name)
	if err != nil || value.Type != platform.RegistryExpandString {
		return value.String
	}
	text := value.String
	for _, variable := range n.environment() {
		name, content, _ := strings.Cut(variable, "=")
		text = strings.ReplaceAll(text, "%"+name+"%", content)
	}
	n.p.p.m.mu.Lock()
	defer n.p.p.m.mu.Unlock()
	return n.p.p.m.expand(text)
}

func (n nssm) environment() []string {
	set, _ := n.p.Platform.Registry.Get(n.key, "AppEnvironment")
	more, _ := n.p.Platform.Registry.Get(n.key, "AppEnvironmentExtra")
	return append(append([]string(nil), set.Strings...), more.Strings...)
}

// file returns the writer of the program's output. A path may be relative to nssm's working directory.
func (n nssm) file(name string, none io.Writer) io.Writer {
	path := strings.Trim(n.text(name), `"`)
	if path == "" {
		return none
	}
	if !strings.Contains(path, ":") {
		path = systemFolder + `\` + path
	}
	return &rotatedLog{m: n.p.p.m, path: path}
}

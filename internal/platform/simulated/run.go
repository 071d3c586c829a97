package simulated

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Ran is one command that a process ran.
type Ran struct {
	Path        string // the requested path
	Args        []string
	Environment []string
	By          string // name of the process that ran the command
	ExitCode    int
	Err         error
}

// Answer is a scripted command's output.
type Answer struct {
	ExitCode       int
	Stdout, Stderr string
}

// ScriptFunc answers a command in place of a program, or returns false.
type ScriptFunc func(platform.Command) (Answer, bool)

// Script adds a function that answers the commands of Processes.Run in place of a program. If
// several such functions return true for a command, the function that was added last wins.
func (m *Machine) Script(f ScriptFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts = append(m.scripts, f)
}

// Commands returns the commands that Processes.Run was called with so far.
func (m *Machine) Commands() []Ran {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Ran(nil), m.commands...)
}

// outputDelay limits how long Run waits, after the end of the command, for an
// output stream that is not read.
const outputDelay = time.Second

func (v processesView) Run(ctx context.Context, c platform.Command) (code int, err error) {
	if err := ctx.Err(); err != nil {
		return -1, err
	}
	err = v.p.operate(Operation{Kind: OpProcessRun, Target: c.Path}, func(Verdict) error {
		var err error
		code, err = v.run(ctx, c)
		return err
	})
	m := v.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands = keepLast(append(m.commands, Ran{
		Path: c.Path, Args: c.Args, Environment: c.Environment, By: v.p.name, ExitCode: code, Err: err,
	}))
	if err != nil {
		return -1, err
	}
	return code, nil
}

func (v processesView) run(ctx context.Context, c platform.Command) (int, error) {
	if answer, ok := v.p.m.scripted(c); ok {
		return answer.write(c)
	}
	e, err := v.prepare(c)
	if err != nil {
		return -1, err
	}
	if c.Terminal != nil {
		return v.runOnTerminal(ctx, c, e)
	}
	if inherited, ok := c.Stdin.(*keyboard); ok { // the command runs on its parent's terminal
		e.terminal, c.Stdin = inherited.terminal, nil
	}
	in, out := newSource(c.Stdin), newSink(c.Stdout)
	errOut := out // the same sink if both go to one stream, so that only one goroutine writes to it
	if !sameWriter(c.Stdout, c.Stderr) {
		errOut = newSink(c.Stderr)
	}
	defer in.close()
	defer out.close()
	defer errOut.close()
	e.stdin, e.stdout, e.stderr = in, out.writer(), errOut.writer()
	child, err := v.p.m.execute(v.p.m.bootContext(), e)
	if err != nil {
		return -1, fmt.Errorf("run %s: %w", c.Path, err)
	}
	select {
	case <-child.ctx.Done():
	case <-ctx.Done():
		child.kill(exitKilled)
		return -1, fmt.Errorf("run %s: %w", c.Path, ctx.Err())
	}
	if err := v.p.check(); err != nil {
		return -1, err
	}
	out.drain(ctx)
	errOut.drain(ctx)
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	return int(child.exitCode), nil
}

// prepare returns the request to start a command, with the path of the command's executable.
func (v processesView) prepare(c platform.Command) (execution, error) {
	m := v.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	e := execution{path: c.Path, args: c.Args, folder: c.Folder, environment: c.Environment, parent: v.p}
	if e.folder == "" {
		e.folder = profileFolder
	}
	if f, err := m.disk.find(e.folder, true); err != nil || !f.folder {
		return e, fmt.Errorf("run %s: working folder %s: %w", c.Path, e.folder, fault.ErrNotExist)
	}
	if _, _, err := splitPath(c.Path); err == nil {
		return e, nil
	}
	if !strings.ContainsAny(c.Path, `/\:`) {
		for _, folder := range m.searchPath() {
			path := folder + `\` + c.Path
			if f, err := m.executable(path); err == nil {
				e.path = f.path()
				return e, nil
			}
		}
	}
	return e, fmt.Errorf("find %s on the machine's PATH: %w", c.Path, fault.ErrNotExist)
}

// searchPath returns the machine's PATH.
func (m *Machine) searchPath() []string {
	k, err := m.registry.find(environmentKey)
	if err != nil {
		return []string{systemFolder}
	}
	var folders []string
	for folder := range strings.SplitSeq(m.expand(k.values["path"].String), ";") {
		if folder = strings.TrimRight(folder, `\`); folder != "" {
			folders = append(folders, folder)
		}
	}
	return folders
}

func (m *Machine) scripted(c platform.Command) (Answer, bool) {
	m.mu.Lock()
	scripts := append([]ScriptFunc(nil), m.scripts...)
	m.mu.Unlock()
	for i := len(scripts) - 1; i >= 0; i-- {
		if answer, ok := scripts[i](c); ok {
			return answer, true
		}
	}
	return Answer{}, false
}

func (a Answer) write(c platform.Command) (int, error) {
	for _, stream := range []struct {
		to   io.Writer
		text string
	}{{c.Stdout, a.Stdout}, {c.Stderr, a.Stderr}} {
		if stream.to == nil || stream.text == "" {
			continue
		}
		if _, err := io.WriteString(stream.to, stream.text); err != nil {
			return -1, fmt.Errorf("run %s: write its output: %w", c.Path, err)
		}
	}
	return a.ExitCode, nil
}

// sameWriter reports whether two writers are equal. Like os/exec, it treats values that cannot be
// compared as different.
func sameWriter(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

// source is a program's stdin. It is a pipe, so that a killed program does not hang in a read of
// the caller's stream.
type source struct {
	from io.Reader
	once sync.Once
	r    *io.PipeReader
	w    *io.PipeWriter
}

func newSource(from io.Reader) *source {
	s := &source{from: from}
	s.r, s.w = io.Pipe()
	if from == nil {
		_ = s.w.Close()
	}
	return s
}

func (s *source) Read(b []byte) (int, error) {
	if s.from != nil {
		s.once.Do(func() { go s.pump() })
	}
	return s.r.Read(b)
}

// pump copies the caller's stream to the program. pump may outlive the process: it ends when the
// caller's stream ends, or when a write to the ended process fails.
func (s *source) pump() {
	_, err := io.Copy(s.w, s.from)
	_ = s.w.CloseWithError(err)
}

func (s *source) close() { _ = s.r.CloseWithError(ErrKilled) }

// sink is a program's stdout or stderr. It is a pipe, so that a killed program does not hang in a
// write to the caller's stream.
type sink struct {
	r    *io.PipeReader
	w    *io.PipeWriter
	done chan struct{} // all bytes are written
}

// newSink returns nil for a stream that is discarded.
func newSink(to io.Writer) *sink {
	if to == nil {
		return nil
	}
	s := &sink{done: make(chan struct{})}
	s.r, s.w = io.Pipe()
	go func() {
		defer close(s.done)
		_, err := io.Copy(struct{ io.Writer }{to}, s.r) // io.Copy then uses only to.Write, as another process would
		_ = s.r.CloseWithError(err)
	}()
	return s
}

func (s *sink) writer() io.Writer {
	if s == nil {
		return nil
	}
	return s.w
}

// drain waits until the program's output has reached the caller's stream.
func (s *sink) drain(ctx context.Context) {
	if s == nil {
		return
	}
	_ = s.w.Close()
	select {
	case <-s.done:
	case <-ctx.Done():
	}
}

func (s *sink) close() {
	if s == nil {
		return
	}
	_ = s.w.CloseWithError(ErrKilled)
	timer := time.NewTimer(outputDelay)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		_ = s.r.CloseWithError(ErrKilled)
	}
}

// keepLast returns the list, without its older half if it has become too long.
func keepLast[T any](list []T) []T {
	const limit = 50_000
	if len(list) <= limit {
		return list
	}
	return append([]T(nil), list[limit/2:]...)
}

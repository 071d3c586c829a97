package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// drainLimit bounds the wait for output that a program's children hold open.
const drainLimit = 10 * time.Second

// prefixFolder is the Wine prefix within a sandbox's folder.
const prefixFolder = "prefix"

func wineDriver() driver {
	return driver{
		name:  "wine",
		check: checkWine,
		start: startWine,
		clean: func(_ context.Context, f folder) error {
			prefix, err := wine.Open(f.file(prefixFolder))
			var missing *wine.MissingError
			if errors.Is(err, fs.ErrNotExist) || errors.As(err, &missing) {
				return nil
			}
			if err != nil {
				return err
			}
			return prefix.Close()
		},
	}
}

func checkWine(r request) error {
	if err := wine.Check(); err != nil || !r.Cluster {
		return err
	}
	return checkCluster()
}

func startWine(ctx context.Context, f folder, r request, _ agentbin.Agent, log *slog.Logger) (running, error) {
	shell, err := parseShell(r.Shell, "")
	if err != nil {
		return running{}, err
	}
	log.Info("preparing a Wine prefix; the first one takes a while", "folder", f.file(prefixFolder))
	prefix, err := wine.Prepare(ctx, f.file(prefixFolder))
	if err != nil {
		return running{}, err
	}
	if err := (prefixDisk{prefix}).MakeFolder(`C:\Users\` + Administrator); err != nil {
		return running{}, fmt.Errorf("make the administrator's profile: %w", err)
	}
	m := &wineMachine{prefix: prefix, shell: shell, log: log}
	if err := m.boot(ctx); err != nil {
		return running{}, errors.Join(err, prefix.Close())
	}
	if !r.Cluster {
		return running{machine: m, prefix: prefix.Folder(), section: ownSection, close: m.close}, nil
	}
	join, err := wineJoinSection(r.Name)
	if err != nil {
		m.close()
		return running{}, err
	}
	cluster, err := startCluster(ctx, f, r.Name, log)
	if err != nil {
		m.close()
		return running{}, err
	}
	return running{
		machine: m, prefix: prefix.Folder(), kubeconfig: cluster.Kubeconfig(), section: join,
		close: func() { m.close(); stopCluster(cluster, log) },
	}, nil
}

// wineMachine is a Wine prefix behind the SSH server. To simulate a reboot, it starts the prefix
// again when the prefix has gone down.
type wineMachine struct {
	prefix *wine.Prefix
	shell  defaultShell
	log    *slog.Logger

	mu       sync.Mutex
	current  context.Context // ends when the prefix goes down; nil while it is down
	stopKeep func()
	closed   bool
}

func (m *wineMachine) boot(ctx context.Context) error {
	down, stop, err := m.prefix.Keep(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		go stop()
		return errors.New("the sandbox ends")
	}
	up, end := context.WithCancel(context.Background())
	m.current, m.stopKeep = up, stop
	go func() {
		<-down
		m.mu.Lock()
		m.current = nil
		m.mu.Unlock()
		end()
		m.bootAgain()
	}()
	return nil
}

// bootLimit bounds one boot. If Wine is started at the moment when its server ends, it sometimes
// hangs for ever; the next attempt then succeeds.
const bootLimit = 15 * time.Second

func (m *wineMachine) bootAgain() {
	for !m.isClosed() {
		m.log.Info("the prefix went down: booting it again")
		ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
		err := m.boot(ctx)
		cancel()
		if err == nil {
			return
		}
		m.log.Error("boot the prefix", "err", err)
		pause := time.NewTimer(100 * time.Millisecond)
		<-pause.C
	}
}

func (m *wineMachine) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

func (m *wineMachine) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	if err := m.prefix.Close(); err != nil {
		m.log.Error("end the prefix", "err", err)
	}
}

func (m *wineMachine) up() (context.Context, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current, m.current != nil
}

func (m *wineMachine) session() (session, error) {
	up, ok := m.up()
	if !ok {
		return nil, errors.New("the machine is down")
	}
	ctx, end := context.WithCancel(up)
	return &wineSession{prefix: m.prefix, shell: m.shell, ctx: ctx, end: end}, nil
}

// wineSession is the session of one SSH channel in a prefix. When the session ends, the programs
// that it runs end too, as on Windows.
type wineSession struct {
	prefix *wine.Prefix
	shell  defaultShell
	ctx    context.Context // the context of the session; programs end with it
	end    func()
}

func (s *wineSession) disk() disk { return prefixDisk{s.prefix} }
func (s *wineSession) close()     { s.end() }

func (s *wineSession) run(ctx context.Context, c command) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	shell := &shell{
		defaultShell: s.shell, disk: s.disk(), program: s.program, builtin: s.builtin, command: c,
		about: "Windows programs run here in Wine, in " + s.prefix.Folder(),
	}
	return shell.run(ctx)
}

// builtin passes cmd's own commands to Wine's cmd.
func (s *wineSession) builtin(ctx context.Context, sub *shell, words []string) (int, bool) {
	switch strings.ToLower(words[0]) {
	case "ver", "dir", "type", "copy", "move", "del", "erase", "ren", "rd", "rmdir", "set", "date", "time",
		"vol", "if", "for":
		code, err := s.program(ctx, platform.Command{
			Path: "cmd", Args: append([]string{"/c"}, words...), Stdin: sub.stdin, Stdout: sub.stdout,
			Stderr: sub.stderr,
		})
		if err != nil {
			fmt.Fprintf(sub.stderr, "%v\r\n", err)
		}
		return code, true
	}
	return 0, false
}

// program runs a Windows program in the prefix to its end.
func (s *wineSession) program(ctx context.Context, c platform.Command) (int, error) {
	path, err := s.find(c.Path)
	if err != nil {
		return 0, err
	}
	cmd := s.prefix.Command(ctx, path, c.Args...)
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	cmd.WaitDelay = drainLimit
	// Use a pipe of our own instead of cmd.Stdin: with cmd.Stdin, Wait would wait for the client
	// to close the input, which the client has no reason to do.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", c.Path, err)
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", c.Path, err)
	}
	go func() {
		defer stdin.Close()
		if c.Stdin != nil {
			_, _ = io.Copy(stdin, c.Stdin) // the copy ends when the program or the client ends
		}
	}()
	err = cmd.Wait()
	if cmd.ProcessState != nil && cmd.ProcessState.Exited() {
		return cmd.ProcessState.ExitCode(), nil
	}
	if ctx.Err() != nil {
		return 1, ctx.Err()
	}
	return 1, err
}

// find returns a program's full path. swdt does not leave the search to Wine: if a command has
// only a name, Wine starts the program through another process, and prints a line of debugging
// output if no such program exists.
func (s *wineSession) find(name string) (string, error) {
	folders := []string{`C:\windows\system32\`, `C:\windows\`}
	if strings.ContainsAny(name, `\/`) {
		folders = []string{""}
	}
	for _, folder := range folders {
		for _, extension := range []string{"", ".exe"} {
			path := folder + name + extension
			local, err := s.prefix.Path(path)
			if err != nil {
				continue
			}
			if info, err := os.Stat(local); err == nil && info.Mode().IsRegular() {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, fault.ErrNotExist)
}

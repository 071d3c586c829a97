package viapod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/viapod/receiver"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// stageFolder is the profile of SYSTEM, in which only SYSTEM and administrators can write. The pod's
	// own folder would not do: on older nodes it is a folder of drive C: with the access list of its parent.
	stageFolder = `C:\Windows\System32\config\systemprofile`
)

// stage is the profile of SYSTEM.
type stage struct {
	c      *connection
	ctx    context.Context
	staged []string // the paths of the files that Put has made; attempts that broke may have left theirs
}

// Stage implements carrier.Connection.
func (c *connection) Stage(ctx context.Context, _ *carrier.FailedStart) (carrier.Stage, error) {
	return &stage{c: c, ctx: ctx}, nil
}

// HasAgent implements carrier.Stage. It reports false: if the agent of a known pod does not start, to send it
// again costs less than the question. It returns an error if no program starts in the pod, as while the
// node's kubelet or runtime is replaced: the agent would then be sent for nothing.
func (s *stage) HasAgent(ctx context.Context, _, _ string) (bool, error) {
	out, err := s.c.Run(ctx, "cmd.exe", "/d", "/c", "exit")
	if err == nil && out.ExitCode != 0 {
		err = fmt.Errorf("cmd.exe in the pod ended with exit code %d: %s", out.ExitCode, shortened(out.Stderr))
	}
	return false, err
}

// putTries bounds the attempts to send the agent. putPause is the pause before the second; each later one is
// twice as long.
const (
	putTries = 4
	putPause = 500 * time.Millisecond
)

// Put implements carrier.Stage. A script on the node writes its stdin to a new file, as many bytes as the
// agent has, and prints the hash of the file. Package node starts the agent only if the hash is right.
//
// If the stream breaks, as while the kubelet or the runtime restarts, Put sends the agent again through the
// same pod.
func (s *stage) Put(ctx context.Context, agent agentbin.Agent, r ui.Reporter) (program string, err error) {
	for try, pause := 1, putPause; ; try, pause = try+1, 2*pause {
		program, err = s.put(ctx, agent, r)
		var broken *brokenError
		if !errors.As(err, &broken) || carrier.IsRefusal(err) || try == putTries {
			return program, err
		}
		r.Warn("%v; sending the agent again, attempt %d of %d", err, try+1, putTries)
		if err := wait.For(ctx, pause); err != nil {
			return "", err
		}
	}
}

// brokenError reports that the stream that carried the agent broke, or ended before the agent's end.
type brokenError struct{ Err error }

func (e *brokenError) Error() string { return "put the agent on the node: " + e.Err.Error() }
func (e *brokenError) Unwrap() error { return e.Err }

// put sends the agent once.
func (s *stage) put(ctx context.Context, agent agentbin.Agent, r ui.Reporter) (program string, err error) {
	const attempt = "put the agent on the node"
	path := stageFolder + `\` + carrier.StagedName()
	from, err := agent.Open()
	if err != nil {
		return "", fmt.Errorf("%s: %w", attempt, err)
	}
	defer from.Close()
	p, err := s.c.Start(ctx, commandline.PowerShell, powershell.ShortArgs(receiver.Script(path, agent.Size))...)
	if err != nil {
		return "", fmt.Errorf("%s: %w", attempt, err)
	}
	defer p.Close()
	defer context.AfterFunc(ctx, func() { p.Close() })()
	s.staged = append(s.staged, path)
	progress := r.Transfer("agent", agent.Size)
	_, sendErr := io.Copy(p.Input(), &counted{from, progress})
	progress.End()
	p.Input().Close()
	out, err := finish(ctx, p)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", &brokenError{err}
	case out.ExitCode == receiver.EndedEarly:
		return "", &brokenError{errors.New("the node has received a part of it")}
	case out.ExitCode == receiver.DiskFull:
		return "", &carrier.DiskFullError{Path: path, Size: agent.Size, Err: errors.New(shortened(out.Stderr))}
	case out.ExitCode != 0:
		return "", fmt.Errorf("%s: PowerShell in the pod ended with exit code %d: %s", attempt, out.ExitCode,
			shortened(out.Stderr+" "+out.Stdout))
	case sendErr != nil && !errors.Is(sendErr, io.ErrClosedPipe):
		return "", fmt.Errorf("%s: %w", attempt, sendErr)
	}
	return path, checkHash(out.Stdout, agent.Hash)
}

// checkHash returns an error unless the last line of the receiver's output is this hash.
func checkHash(output, hash string) error {
	lines := strings.Fields(output)
	if len(lines) == 0 || !strings.EqualFold(lines[len(lines)-1], hash) {
		return fmt.Errorf("read the agent back on the node: it is not what was sent (%.80q, not the SHA-256 %.12s…); "+
			"try again", shortened(output), hash)
	}
	return nil
}

// Vanished implements carrier.Stage.
func (s *stage) Vanished(ctx context.Context, program string) bool {
	out, err := s.c.Run(ctx, "cmd.exe", "/d", "/c", "dir", "/b", program)
	return err == nil && out.ExitCode != 0
}

// Close implements carrier.Stage. If a removal fails, the next receiver removes the file after a day.
func (s *stage) Close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), closeLimit)
	defer cancel()
	for _, path := range s.staged {
		if _, err := s.c.Run(ctx, "cmd.exe", "/d", "/c", "del", "/f", "/q", path); err != nil {
			s.c.way.o.Reporter.Debug("remove %s: %v", path, err)
		}
	}
}

type counted struct {
	io.Reader
	progress ui.Progress
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.progress.Add(int64(n))
	return n, err
}

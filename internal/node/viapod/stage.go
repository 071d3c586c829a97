package viapod

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/powershell"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// stageFolder is the profile of SYSTEM, in which only SYSTEM and administrators can write. The pod's
	// own folder would not do: on older nodes it is a folder of drive C: with the access list of its parent.
	stageFolder  = `C:\Windows\System32\config\systemprofile`
	stagedPrefix = "swdt-agent-"
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
	path := stageFolder + `\` + stagedPrefix + strings.ToLower(rand.Text()) + ".exe"
	from, err := agent.Open()
	if err != nil {
		return "", fmt.Errorf("%s: %w", attempt, err)
	}
	defer from.Close()
	p, err := s.c.Start(ctx, powershell.Program, powershell.ShortArgs(receiver(path, agent.Size))...)
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
	case out.ExitCode == EndedEarly:
		return "", &brokenError{errors.New("the node has received a part of it")}
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

// receiver returns the script that receives a file of this size. Its variables are set without the
// prologue of other scripts, since the script travels in the URL of a request, which proxies limit.
//
// The hash is of a class that Windows also allows in its FIPS mode.
func receiver(path string, size int64) string {
	return fmt.Sprintf(receiverHead, path, size) + receiverText
}

// EndedEarly is the exit code of the receiver if its stdin ended before the agent's end.
const EndedEarly = 86

const (
	receiverHead = "$path = '%s'; $left = %d\n"
	receiverText = `$ErrorActionPreference = 'Stop'
trap { [Console]::Error.WriteLine("$_"); exit 1 }
Get-ChildItem -LiteralPath (Split-Path $path) -Filter 'swdt-agent-*.exe' | Where-Object {
  $_.LastWriteTimeUtc -lt [DateTime]::UtcNow.AddDays(-1) } | Remove-Item -Force -ErrorAction SilentlyContinue
$in = [Console]::OpenStandardInput()
$file = New-Object IO.FileStream $path, 'CreateNew', 'ReadWrite', 'None'
$buffer = New-Object byte[] 1048576
while ($left -gt 0) {
  $n = $in.Read($buffer, 0, [Math]::Min($buffer.Length, $left))
  if ($n -le 0) { $file.Dispose(); exit 86 }
  $file.Write($buffer, 0, $n); $left -= $n
}
$file.Flush($true); $file.Position = 0
$hash = New-Object Security.Cryptography.SHA256CryptoServiceProvider
[Console]::WriteLine([BitConverter]::ToString($hash.ComputeHash($file)).Replace('-', ''))
$file.Dispose(); exit 0
`
)

// Received returns the path and the size of the file that a command receives, if the command is the
// receiver of this package. Stand-ins for a node use it in place of PowerShell.
func Received(command []string) (path string, size int64, ok bool) {
	if len(command) < 2 || command[0] != powershell.Program {
		return "", 0, false
	}
	script, err := powershell.Decode(command[len(command)-1])
	head, hasText := strings.CutSuffix(script, receiverText)
	if err != nil || !hasText {
		return "", 0, false
	}
	found := regexp.MustCompile(`^\$path = '([^']+)'; \$left = (\d+)\n$`).FindStringSubmatch(head)
	if found == nil {
		return "", 0, false
	}
	size, err = strconv.ParseInt(found[2], 10, 64)
	return found[1], size, err == nil
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

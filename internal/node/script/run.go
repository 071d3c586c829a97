// Package script runs PowerShell scripts of any length on a node.
package script

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// scripts is the folder of scripts that are too long for a command line. It is below
// layout.Root, so that only an administrator can change a script before it runs.
const scripts = layout.Root + `\script`

// chunk is the size of the part of a long script that one message carries, in bytes.
const chunk = 256 << 10

// cleanUp bounds the removal of a script's file that the script has not deleted itself.
const cleanUp = 5 * time.Second

// Clients are the agent's services that run a script.
type Clients struct {
	Files     agentv1.FilesClient
	Processes agentv1.ProcessesClient
}

// Run runs a script of any length and returns the script's exit code. Run converts CLIXML on
// stderr, which a PowerShell started by the script may write, to plain text.
func Run(ctx context.Context, c Clients, script string, s command.Streams) (int, error) {
	if strings.ContainsRune(script, 0) {
		return 0, errors.New("the script has NUL characters: save it as UTF-8, not UTF-16")
	}
	args, ok := powershell.Args(script)
	if !ok {
		path, err := upload(ctx, c.Files, script)
		if err != nil {
			return 0, err
		}
		defer remove(ctx, c.Files, path)
		args = powershell.FileArgs(path)
	}
	if s.Stderr != nil {
		plain := powershell.NewDecoder(command.LimitMemory(s.Stderr))
		defer plain.Close()
		s.Stderr = plain
	}
	code, err := command.Run(ctx, c.Processes, &agentv1.RunCommand{Path: powershell.Program, Args: args}, s)
	if errors.Is(err, fault.ErrNotExist) {
		return 0, fmt.Errorf("%w; the node has no Windows PowerShell on its PATH (Nano Server never has)", err)
	}
	return code, err
}

// Output is the output and exit code of a script.
type Output struct {
	ExitCode int
	Stdout   string
	Stderr   string
}

// RunForOutput runs a script without stdin and returns what it prints.
func RunForOutput(ctx context.Context, c Clients, script string) (Output, error) {
	var stdout, stderr strings.Builder
	code, err := Run(ctx, c, script, command.Streams{Stdout: &stdout, Stderr: &stderr})
	return Output{ExitCode: code, Stdout: stdout.String(), Stderr: stderr.String()}, err
}

func upload(ctx context.Context, files agentv1.FilesClient, script string) (string, error) {
	path := scripts + `\` + rand.Text() + ".ps1"
	sum := sha256.Sum256([]byte(script))
	stream, err := files.Write(ctx)
	if err != nil {
		return "", fmt.Errorf("send the script: %w", err)
	}
	request := &agentv1.WriteRequest{Header: &agentv1.WriteHeader{
		Path: path, Size: int64(len(script)), Sha256: hex.EncodeToString(sum[:]), MakeFolder: true, NewOnly: true,
	}}
	for {
		n := min(len(script), chunk)
		request.Data = []byte(script[:n])
		script = script[n:]
		if err := stream.Send(request); err != nil {
			break // CloseAndRecv returns the cause
		}
		if script == "" {
			break
		}
		request = &agentv1.WriteRequest{}
	}
	if _, err := stream.CloseAndRecv(); err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("send the script: %w", err)
	}
	return path, nil
}

// remove removes the file of a script if the script has not deleted it, because the script never
// started or the call was interrupted. If the node is unreachable, the file stays: a few kilobytes
// that only administrators can read.
func remove(ctx context.Context, files agentv1.FilesClient, path string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	_, _ = files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
}

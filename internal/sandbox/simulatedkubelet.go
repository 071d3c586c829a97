package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/node/viapod/receiver"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/sandbox/hostprocess"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// SimulatedKubelets returns the kubelets of simulated machines, by the names of their Nodes. Tests of nodes
// that are reached through their cluster need them.
func SimulatedKubelets(machines map[string]*simulated.Machine) apiserver.Kubelets {
	all := simulatedKubelets{}
	for name, machine := range machines {
		all[name] = simulatedKubelet{machine}
	}
	return all
}

type simulatedKubelets map[string]simulatedKubelet

// Starts implements apiserver.Kubelets.
func (k simulatedKubelets) Starts(node string) bool {
	one, ok := k[node]
	return ok && one.Starts(node)
}

// Exec implements apiserver.Kubelets.
func (k simulatedKubelets) Exec(ctx context.Context, node string, command []string, stdin io.Reader, stdout,
	stderr io.Writer) (int, error) {
	one, ok := k[node]
	if !ok {
		return 0, fmt.Errorf("node %s has no kubelet", node)
	}
	return one.Exec(ctx, node, command, stdin, stdout, stderr)
}

// simulatedKubelet is the kubelet and the container runtime of a simulated machine, as far as HostProcess
// pods need them: a program in such a pod runs on the machine itself, and its stream ends with the kubelet
// or the runtime that carries it. Services decide that, so a push of kubelet through the pod cuts it.
type simulatedKubelet struct{ machine *simulated.Machine }

// carrierPoll is how often the services that carry a stream are looked at.
const carrierPoll = 20 * time.Millisecond

// Starts implements apiserver.Kubelets.
func (k simulatedKubelet) Starts(string) bool {
	process := k.machine.Spawn("kubelet-look")
	defer process.Exit()
	_, err := carriers(context.Background(), process)
	return err == nil
}

// Config implements apiserver.Configured.
func (k simulatedKubelets) Config(node string) json.RawMessage {
	if one, ok := k[node]; ok {
		return one.Config(node)
	}
	return nil
}

// Config implements apiserver.Configured: it has the file of --config, if that is the usual one.
func (k simulatedKubelet) Config(string) json.RawMessage {
	process := k.machine.Spawn("kubelet-look")
	defer process.Exit()
	file, err := process.Platform.Files.Open(`C:\var\lib\kubelet\config.yaml`)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil
	}
	config, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil
	}
	return config
}

// carriers returns the processes of the services that carry streams.
func carriers(ctx context.Context, p *simulated.Process) (pids string, err error) {
	for _, name := range []string{"kubelet", "containerd"} {
		status, err := p.Platform.Services.Status(ctx, name)
		if err != nil {
			return "", err
		}
		if status.State != platform.Running {
			return "", fmt.Errorf("the service %s does not run", name)
		}
		pids += fmt.Sprint(status.PID, " ")
	}
	return pids, nil
}

// Exec implements apiserver.Kubelets.
func (k simulatedKubelet) Exec(ctx context.Context, _ string, command []string, stdin io.Reader, stdout,
	stderr io.Writer) (int, error) {
	process := k.machine.Spawn("host-process-container")
	defer process.Kill()
	begun, err := carriers(ctx, process)
	if err != nil {
		return 0, fmt.Errorf("connect to the kubelet: %w", err)
	}
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	go func() {
		_ = wait.Condition{Name: "the stream to break", Interval: carrierPoll, Look: func(ctx context.Context) error {
			if now, err := carriers(ctx, process); err == nil && now == begun {
				return errors.New("it holds")
			}
			cut(apiserver.ErrCut)
			return nil
		}}.Wait(ctx)
	}()
	code, err := k.run(ctx, process, command, stdin, stdout, stderr)
	if errors.Is(context.Cause(ctx), apiserver.ErrCut) {
		return 0, apiserver.ErrCut
	}
	return code, err
}

func (k simulatedKubelet) run(ctx context.Context, p *simulated.Process, command []string, stdin io.Reader, stdout,
	stderr io.Writer) (int, error) {
	if _, err := (hostprocess.Windows{Binds: true}).ShellLine(command...); err != nil { // as on a real node
		fmt.Fprintf(stderr, "%v\r\n", err)
		return 1, nil
	}
	if path, size, ok := receiver.Received(command); ok {
		return receive(p, path, size, stdin, stdout, stderr), nil
	}
	return p.Platform.Processes.Run(ctx, platform.Command{Path: command[0], Args: command[1:], Stdin: stdin,
		Stdout: stdout, Stderr: stderr})
}

// receive does the work of the script with which swdt sends the agent, which no simulated PowerShell can
// run.
func receive(p *simulated.Process, path string, size int64, stdin io.Reader, stdout, stderr io.Writer) int {
	sum, received, err := receiveFile(p.Platform.Files, path, io.LimitReader(stdin, size))
	switch {
	case errors.Is(err, fault.ErrDiskFull): // as PowerShell reports the exception of .NET
		fmt.Fprint(stderr, "Exception calling \"Write\" with \"3\" argument(s): \"There is not enough space on the disk.\r\n\"\r\n")
		return receiver.DiskFull
	case err != nil:
		fmt.Fprintf(stderr, "%v\r\n", err)
		return 1
	case received < size:
		return receiver.EndedEarly
	}
	fmt.Fprintf(stdout, "%s\r\n", strings.ToUpper(sum))
	return 0
}

// receiveFile writes a new file and returns its hash and its size.
func receiveFile(files platform.Files, path string, content io.Reader) (sum string, size int64, err error) {
	to, err := files.NewFile(path, "")
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	size, err = io.Copy(struct{ io.Writer }{to}, io.TeeReader(content, hash))
	if err := errors.Join(err, to.Close()); err != nil {
		return "", size, err
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

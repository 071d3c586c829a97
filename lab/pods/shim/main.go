//go:build windows

// Command containerd-shim-lab-v1 runs containers for containerd under Wine, as containerd's
// runtime io.containerd.lab.v1. A container is a process in a job object. The process runs a
// program of the container's image, but without isolation. The shim answers containerd's
// requests with real values: CPU time and memory are those of the job's processes, in the
// format of runhcs, the shim for Windows (microsoft/hcsshim, cmd/containerd-shim-runhcs-v1, and its stats and options
// messages in pkg).
//
// containerd starts the program as it starts every shim: `start` starts a process that serves
// a task service on a pipe, and prints the path of the pipe; `delete` prints the result of a
// serving process that has ended (containerd/containerd, core/runtime/v2/README.md).
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	task "github.com/containerd/containerd/api/runtime/task/v2"
	"golang.org/x/sys/windows"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// options are the settings that containerd passes on the command line.
type options struct {
	namespace, id string
	action        string
}

// killed is the exit code of a process that ended together with its shim or its container.
const killed = 137

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "containerd-shim-lab-v1:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("containerd-shim-lab-v1", flag.ContinueOnError)
	flags.StringVar(&o.namespace, "namespace", "", "containerd's namespace")
	flags.StringVar(&o.id, "id", "", "the container's ID")
	for _, ignored := range []string{"address", "publish-binary", "bundle", "socket"} {
		flags.String(ignored, "", "not needed")
	}
	flags.Bool("debug", false, "not needed")
	info := flags.Bool("info", false, "the question of containerd 2 to every shim; the answer is empty")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *info {
		o.action = "info"
		return o, nil
	}
	o.action = flags.Arg(0)
	if o.namespace == "" || o.id == "" {
		return o, errors.New("--namespace and --id are missing: containerd starts this program")
	}
	return o, nil
}

func run(o options, stdout *os.File) error {
	switch o.action {
	case "info":
		return nil
	case "start":
		return start(o, stdout)
	case "serve":
		return serve(o, stdout)
	case "delete":
		return printDeleted(stdout)
	}
	return fmt.Errorf("there is no action %q", o.action)
}

// address returns the path of the shim's pipe, which has the name of hcsshim's: cmd/containerd-shim-runhcs-v1/start.go.
func (o options) address() string {
	return `\\.\pipe\ProtectedPrefix\Administrators\containerd-shim-` + o.namespace + "-" + o.id + "-pipe"
}

// start starts the serving process, which outlives containerd, and waits until that process
// serves. containerd runs start in the bundle's folder. start writes the address into that
// folder, in which containerd looks for the address after a restart.
func start(o options, stdout io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	bundle, err := os.Getwd()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, "-namespace", o.namespace, "-id", o.id, "serve")
	cmd.Dir = filepath.VolumeName(exe) + `\` // not the bundle: a process's working folder cannot be removed
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	greeting, err := bufio.NewReader(ready).ReadString('\n')
	if err != nil || strings.TrimSpace(greeting) != o.address() {
		return fmt.Errorf("the serving process sent %q: %w", greeting, errors.Join(err, cmd.Wait()))
	}
	if err := os.WriteFile(filepath.Join(bundle, "address"), []byte(o.address()), 0o600); err != nil {
		return err
	}
	_, err = io.WriteString(stdout, o.address())
	return err
}

func printDeleted(stdout io.Writer) error {
	content, err := proto.Marshal(&task.DeleteResponse{ExitStatus: killed, ExitedAt: timestamppb.New(time.Now())})
	if err != nil {
		return err
	}
	_, err = stdout.Write(content)
	return err
}

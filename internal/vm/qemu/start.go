package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wait/lifetime"
)

// startLimit bounds the time until QEMU answers on its socket. QEMU needs a quarter of a second on
// an idle machine.
const startLimit = 2 * time.Minute

// cleanLimit bounds the removal of the remains of a failed action, also if the action's context has
// ended.
const cleanLimit = 30 * time.Second

// Start starts the VM and returns once it executes. The caller has the VM's lock.
func (d *Driver) Start(ctx context.Context, m vm.Machine) error {
	return d.start(ctx, m, "", nil)
}

// start starts the VM. If load is not nil, start calls it before the VM executes. If
// accelerator is empty, start chooses one.
func (d *Driver) start(ctx context.Context, m vm.Machine, accelerator string,
	load func(context.Context, *qmp.Client) error,
) error {
	if err := supported("start VM " + m.Name); err != nil {
		return err
	}
	if !exists(filesOf(m).disk()) {
		return vm.ErrAbsent
	}
	now, err := d.find(m)
	if err != nil {
		return err
	}
	if now.qemu != nil {
		return d.finishStart(ctx, now)
	}
	// A QEMU that was killed a moment ago may still lock its disks.
	if err := process.AwaitEnding(ctx, now.last); err != nil {
		return err
	}
	if err := d.clean(ctx, m, now.started); err != nil {
		return err
	}
	p, record, err := d.prepare(ctx, m, accelerator)
	if err != nil {
		return errors.Join(err, d.clean(ctx, m, record))
	}
	p.paused = load != nil
	if err := d.launch(ctx, p, &record, load); err != nil {
		return errors.Join(err, d.abandon(ctx, m, record))
	}
	return nil
}

// finishStart waits for a QEMU that does not answer yet, because the swdt that has started it was killed. It returns
// ErrRunning if QEMU answers already.
func (d *Driver) finishStart(ctx context.Context, now found) error {
	if _, err := d.paused(ctx, now); err == nil {
		return vm.ErrRunning
	}
	bounded, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	client, err := answered(bounded, sockets{now.started.Sockets}, func() bool { return !now.qemu.Alive() })
	if err != nil {
		return err
	}
	defer client.Close()
	return executes(bounded, client)
}

// executes returns nil if the guest executes, or the reason why it does not.
func executes(ctx context.Context, client *qmp.Client) error {
	state, err := runState(ctx, client)
	if reason := pauses(state); err == nil && reason != "" {
		err = errors.New(reason)
	}
	return err
}

// prepare collects the values for the VM's command line, and makes the folder run/ and the folder
// of the sockets.
func (d *Driver) prepare(ctx context.Context, m vm.Machine, accelerator string) (plan, started, error) {
	if err := errors.Join(valid(m), owned(m)); err != nil {
		return plan{}, started{}, err
	}
	if _, err := base(m); err != nil {
		return plan{}, started{}, err
	}
	if err := recoverTPM(m); err != nil {
		return plan{}, started{}, err
	}
	uefi, err := d.firmware(m)
	if err != nil {
		return plan{}, started{}, err
	}
	m.Accelerator = either(accelerator, m.Accelerator)
	choice, err := d.accelerator(ctx, m)
	if err != nil {
		return plan{}, started{}, err
	}
	var hardware made
	if err := readRecord(filesOf(m).made(), &hardware); err != nil {
		return plan{}, started{}, err
	}
	if err := makePrivate(filesOf(m).run()); err != nil {
		return plan{}, started{}, err
	}
	place, err := makeSockets(m)
	if err != nil {
		return plan{}, started{}, err
	}
	record := started{
		Boot: process.BootID(), Since: time.Now(), Sockets: place.folder, Accelerator: choice.Name,
		Passt: m.Network.Outbound(), Logs: map[string]int{},
	}
	return plan{
		Machine: m, machineType: hardware.Machine, accelerator: choice.Name, firmware: uefi,
		sockets: place, sandbox: sandboxed(),
	}, record, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// launch starts the TPM and the network, then QEMU, and waits until the VM executes. It notes the processes that it
// has started in the record, so that the caller can undo a start that has failed.
func (d *Driver) launch(ctx context.Context, p plan, record *started,
	load func(context.Context, *qmp.Client) error,
) error {
	f := filesOf(p.Machine)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := writeRecord(f.started(), record); err != nil {
		return err
	}
	if p.Firmware.TPM {
		tpm, err := d.startTPM(ctx, p)
		maps.Copy(record.Logs, tpm.logs)
		if err := errors.Join(err, writeRecord(f.started(), record)); err != nil {
			return err
		}
	}
	if p.Network.Outbound() {
		network, err := d.startOutbound(ctx, p)
		maps.Copy(record.Logs, network.logs)
		if err := errors.Join(err, writeRecord(f.started(), record)); err != nil {
			return err
		}
	}
	path, err := d.qemu()
	if err != nil {
		return err
	}
	// QEMU itself makes all of its files except its logs, with a mask that keeps other users out.
	logs := output{out: f.serialLog(), maxOut: d.serialLog, messages: f.log(), maxMessages: maxLog}
	program, err := spawn(p.Machine, logs, path, p.arguments()...)
	record.QEMU = program.pid
	maps.Copy(record.Logs, program.logs)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	client, err := answered(bounded, p.sockets, func() bool {
		select {
		case <-program.ended:
			return true
		default:
			return false
		}
	})
	if err != nil {
		return explain(p, err)
	}
	defer client.Close()
	if err := writeRecord(f.started(), record); err != nil {
		return err
	}
	if p.Display == vm.DisplayPort {
		if err := protectScreen(bounded, client, f.vncSecret()); err != nil {
			return err
		}
	}
	if load != nil {
		if err := load(ctx, client); err != nil {
			return err
		}
		if err := client.Run(ctx, "cont", nil, nil); err != nil {
			return err
		}
	}
	if err := executes(bounded, client); err != nil {
		return explain(p, err)
	}
	return nil
}

// output has the paths and limits of a program's logs: of its standard output, and of its messages.
type output struct {
	out, messages       string
	maxOut, maxMessages int // bytes in each file of a log
}

// spawned is a program that outlives swdt.
type spawned struct {
	ended <-chan struct{} // closed once the program has ended and its logs are complete
	pid   int
	logs  map[string]int // the processes that write the program's logs, by the log's path
}

// spawn starts a program that outlives swdt, in a session of its own.
func spawn(m vm.Machine, o output, path string, args ...string) (spawned, error) {
	s := spawned{logs: map[string]int{}}
	var writers []*exec.Cmd
	open := func(log string, limit int) (*os.File, error) {
		in, writer, err := startLog(m, log, limit)
		if err == nil {
			writers, s.logs[log] = append(writers, writer), writer.Process.Pid
		}
		return in, err
	}
	messages, err := open(o.messages, o.maxMessages)
	if err != nil {
		return s, err
	}
	defer messages.Close()
	out := messages
	if o.out != o.messages {
		if out, err = open(o.out, o.maxOut); err != nil {
			return s, err
		}
		defer out.Close()
	}
	// Files and sockets of the program are private from their first moment.
	cmd := exec.Command("/bin/sh", append([]string{"-c", `umask 077; exec "$0" "$@"`, path}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = out, messages, environment(), m.Folder
	lifetime.Outlive(cmd)
	if err := cmd.Start(); err != nil {
		return s, fmt.Errorf("start %s: %w", filepath.Base(path), err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, c := range append([]*exec.Cmd{cmd}, writers...) {
			_ = c.Wait() // the program's log has the reason
		}
	}()
	s.ended, s.pid = ended, cmd.Process.Pid
	return s, nil
}

// errEnded is returned if a program ends while it starts.
var errEnded = errors.New("ended at once")

// answered waits until QEMU answers on its control socket, or has ended.
func answered(ctx context.Context, s sockets, ended func() bool) (client *qmp.Client, err error) {
	err = wait.Condition{
		Name: "QEMU to answer", Interval: 10 * time.Millisecond, MaxInterval: 200 * time.Millisecond,
		Look: func(ctx context.Context) (err error) {
			if ended() {
				return wait.Stop(fmt.Errorf("QEMU %w", errEnded))
			}
			client, err = qmp.Dial(ctx, s.control())
			var refused *qmp.Error
			return wait.StopIf(errors.As(err, &refused), err)
		},
	}.Wait(ctx)
	return client, err
}

// explain adds the messages that QEMU has logged to the error of a start, and detects whether
// another process uses a forwarded port.
func explain(p plan, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if last := lastLines(filesOf(p.Machine).log()); last != "" {
		err = fmt.Errorf("%w: %s", err, last)
	}
	return explainPorts(p, err)
}

// explainPorts detects whether another process uses a forwarded port, if a program has ended at once.
func explainPorts(p plan, err error) error {
	if p.Network.Mode != vm.UserMode || !errors.Is(err, errEnded) {
		return err
	}
	for _, f := range p.Network.Forwards {
		listener, inUse := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(f.HostPort))
		if inUse != nil {
			return fmt.Errorf("forward port %d to the guest: %w; choose another: %w", f.HostPort, vm.ErrPortTaken, err)
		}
		_ = listener.Close() // nothing has connected
	}
	return err
}

// abandon ends the processes of a start that has failed, and removes its files.
func (d *Driver) abandon(ctx context.Context, m vm.Machine, record started) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
	defer cancel()
	if qemu := processOf(m, record.QEMU); qemu != nil {
		if err := end(after, qemu, sockets{record.Sockets}); err != nil {
			return err
		}
	}
	return d.clean(after, m, record)
}

// copyFile copies a file of at most limit bytes to a new file.
func copyFile(from, to string, limit int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, localfile.Private)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%s has more than %d bytes", from, limit)
	}
	return errors.Join(err, out.Sync(), out.Close())
}

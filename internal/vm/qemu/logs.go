package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
	"github.com/swdt-dev/swdt/internal/wait/lifetime"
)

// A guest decides how much it writes to its serial port, and how often QEMU warns about it. QEMU
// has no limit for either, and swdt does not run all the time. So both outputs go through a pipe to
// the script keepLog, whose shell and cat end with QEMU. keepLog keeps the last part of a log in
// two files, LOG and LOG.1; LOG.1 has the older text.
const (
	// maxSerialLog bounds each of the two files of the serial port's log, and maxLog each of the
	// two files of a program's messages, in bytes.
	maxSerialLog = 32 << 20
	maxLog       = 1 << 20
	// olderLog is the end of the name of the older file.
	olderLog = ".1"
)

// keepLog is a script for sh. Its $0 is the path of the log, and $1 the limit in blocks of 512
// bytes. If a cat reaches the limit, the kernel ends it by a signal, and its status is above 128.
// The log loses the bytes that this cat has read but not written, at most a buffer. The next cat
// begins a new file. The script ends at the end of its input. It also ends if the disk is full:
// QEMU then continues without a log.
const keepLog = `umask 077; ulimit -c 0; ulimit -f "$1"; ` +
	`while cat >"$0"; [ $? -gt 128 ]; do mv -f "$0" "$0` + olderLog + `"; done`

// logMark returns words that are in the command line of the process that writes a log, and of no
// other process.
func logMark(path string) []string { return []string{keepLog, path} }

// startLog starts the process that writes a log, with at most limit bytes in each file, and removes
// the log of an earlier run. The returned file is one end of a pipe: everything that is written to
// this file goes into the log. The caller passes the file to a program as output, and closes the file
// after it has started the program.
func startLog(m vm.Machine, path string, limit int) (*os.File, *exec.Cmd, error) {
	for _, old := range []string{path, path + olderLog} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
	}
	if err := os.WriteFile(path, nil, localfile.Private); err != nil { // an error of WriteFile names the path
		return nil, nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer out.Close()
	words := append([]string{"-c"}, logMark(path)...)
	cmd := exec.Command("/bin/sh", append(words, strconv.Itoa(limit/512), m.UUID)...)
	cmd.Stdin, cmd.Env = out, environment()
	lifetime.Outlive(cmd)
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the writer of %s: %w", path, err), in.Close())
	}
	return in, cmd, nil
}

// logsLimit bounds the wait for the last bytes of logs. The disk may be slow.
const logsLimit = 5 * time.Second

// endLogs waits until the logs of programs that have ended are complete. A writer that still works
// after logsLimit ends by itself later.
func endLogs(ctx context.Context, m vm.Machine, s started) error {
	if s.Boot != process.BootID() {
		return nil
	}
	f := filesOf(m)
	for _, path := range []string{f.serialLog(), f.log(), f.tpmLog(), f.networkLog()} {
		writer := process.Find(s.Logs[path], logMark(path)...)
		if writer == nil {
			continue
		}
		if err := writer.Ended(ctx, logsLimit); err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

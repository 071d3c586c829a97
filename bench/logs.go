//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	logLines = 10_000_000
	needle   = "needle"
	// While swdt follows a log, the log grows by growth bytes, growthRate times a second.
	growth     = 20_000_000
	growthRate = 10 // a second
	growths    = 50
	// wholeLimit bounds the time to read the whole log: Wine's cmd prints only a few megabytes
	// a second.
	wholeLimit = 20 * time.Minute
)

// Logs has the results of the part logs.
type Logs struct {
	Machine Machine   `json:"machine"`
	Repeat  int       `json:"repeat"`
	Lines   int       `json:"lines"`
	Bytes   int64     `json:"bytes"`
	Ways    []LogRead `json:"ways"`
	Follow  Followed  `json:"follow"`
}

// LogRead has the results of one way to read the log.
type LogRead struct {
	Way     string  `json:"way"`
	Seconds float64 `json:"seconds"`
	Wire    int64   `json:"wireBytes"`
	Memory  int64   `json:"memoryBytes"`
	Lines   int64   `json:"lines"`
}

// Followed has the results of following a log while the log grew.
type Followed struct {
	Bytes          int64   `json:"bytes"`
	WrittenSeconds float64 `json:"writtenSeconds"` // from the first byte to the last
	ShownSeconds   float64 `json:"shownSeconds"`   // until the last byte was on stdout
	Memory         int64   `json:"memoryBytes"`
}

// logs reads a log in each way, and follows it.
func (b *bench) logs(ctx context.Context) (Logs, error) {
	node, err := b.startWineNode(ctx, filepath.Join(b.work, "logs"))
	defer node.end(ctx)
	if err != nil {
		return Logs{}, err
	}
	wire, err := newWire(node.server.address)
	if err != nil {
		return Logs{}, err
	}
	defer wire.Close()
	file, err := node.nodeFile("logs", wire.listener.Addr().String(), provisioner("none", "none.exe", `C:\none.exe`))
	if err != nil {
		return Logs{}, err
	}
	result := Logs{Repeat: b.repeat, Lines: logLines}
	if result.Bytes, err = writeLog(node.drive("bench.log")); err != nil {
		return result, err
	}
	if _, err := node.swdt(ctx, "exec", "-c", file, "--", "hostname"); err != nil { // installs the agent
		return result, err
	}
	for _, way := range node.waysToRead(file, wire) {
		read, err := way.measure(ctx, b.repeat, wire)
		if err != nil {
			return result, err
		}
		logf("%-34s %8.3fs %12d bytes %4d MB %9d lines", read.Way, read.Seconds, read.Wire, read.Memory>>20, read.Lines)
		result.Ways = append(result.Ways, read)
	}
	result.Follow, err = node.follow(ctx, file)
	logf("followed: %d bytes written in %.2fs, shown after %.2fs", result.Follow.Bytes, result.Follow.WrittenSeconds,
		result.Follow.ShownSeconds)
	return result, err
}

// writeLog writes a log of logLines lines, of which one contains needle. It returns the size of the
// log in bytes.
func writeLog(path string) (int64, error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<20)
	begun := time.Now().UTC().Add(-time.Hour)
	for i := range logLines {
		word := "container"
		if i == logLines/3 {
			word = needle
		}
		writeLine(out, begun, i, word)
	}
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		return 0, err
	}
	return sizeOf(path)
}

// writeLine writes a line as kubelet does. The line differs from all other lines of the log.
func writeLine(out io.Writer, begun time.Time, i int, word string) {
	stamp := begun.Add(time.Duration(i) * 300 * time.Microsecond).Format("0102 15:04:05.000000")
	fmt.Fprintf(out, "I%s    4242 kubelet.go:%4d] \"SyncLoop (PLEG): event for %s\" pod=\"default/web-%07d\"\n", stamp,
		i%10_000, word, i)
}

// wayToRead is a command whose output is the log, or a part of it.
type wayToRead struct {
	name  string
	c     command
	lines int64 // number of lines that the command must print
}

func (n *wineNode) waysToRead(file string, wire *wire) []wayToRead {
	swdt := func(name string, lines int64, args ...string) wayToRead {
		c := words(n.b.swdt, append([]string{"logs", "-c", file, `file:C:\bench.log`}, args...)...)
		c.env = []string{"XDG_CACHE_HOME=" + n.cache}
		return wayToRead{name, c, lines}
	}
	_, port, _ := net.SplitHostPort(wire.listener.Addr().String()) // a listener's address has a port
	ssh := words("ssh", append(n.keys.clientOptions(), "-p", port, "root@127.0.0.1", `cmd /c type C:\bench.log`)...)
	ssh.limit = wholeLimit
	return []wayToRead{
		swdt("swdt logs --tail 100", 100, "--tail", "100"),
		swdt("swdt logs --grep needle", 1, "--tail", "-1", "--grep", needle),
		swdt("swdt logs --grep 'web-[67]{7}'", 1<<7, "--tail", "-1", "--grep", "web-[67]{7}"),
		swdt("swdt logs --tail -1", logLines, "--tail", "-1"),
		{"ssh … type", ssh, logLines},
	}
}

func (w wayToRead) measure(ctx context.Context, repeat int, wire *wire) (LogRead, error) {
	read := LogRead{Way: w.name}
	var times []float64
	for range repeat {
		before := wire.bytes.Load()
		var out counter
		t, err := w.c.into(ctx, &out)
		if err != nil {
			return read, err
		}
		if read.Lines = out.lines.Load(); read.Lines != w.lines {
			return read, fmt.Errorf("%s printed %d lines, not %d", w.name, read.Lines, w.lines)
		}
		times = append(times, t.seconds)
		read.Wire, read.Memory = wire.bytes.Load()-before, max(read.Memory, t.memory)
		if t.seconds > slow {
			break
		}
	}
	read.Seconds = median(times)
	return read, nil
}

// into runs a command and writes its output to out, since the output is too large to keep in memory.
func (c command) into(ctx context.Context, out io.Writer) (taken, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.limit, limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return taken{}, fmt.Errorf("%s: %w\n%s", c, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return taken{seconds: time.Since(begun).Seconds(), memory: peak(cmd)}, nil
}

func peak(cmd *exec.Cmd) int64 {
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}

// counter counts the bytes and lines written to it.
type counter struct{ bytes, lines atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	c.lines.Add(int64(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

// follow follows a log while it grows.
func (n *wineNode) follow(ctx context.Context, file string) (Followed, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	path := n.drive("follow.log")
	if err := os.WriteFile(path, []byte("first\n"), 0o600); err != nil {
		return Followed{}, err
	}
	cmd := exec.CommandContext(ctx, n.b.swdt, "logs", "-c", file, `file:C:\follow.log`, "-f", "--tail", "1")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+n.cache)
	out := &awaited{counter: &counter{}, reached: make(chan struct{}, 1)}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		return Followed{}, err
	}
	f, err := n.grow(ctx, path, out)
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait() // the error only reports the interrupt
	f.Memory = peak(cmd)
	return f, err
}

func (n *wineNode) grow(ctx context.Context, path string, out *awaited) (Followed, error) {
	if err := out.await(ctx, int64(len("first\n"))); err != nil {
		return Followed{}, err
	}
	log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return Followed{}, err
	}
	defer log.Close()
	var lines bytes.Buffer
	for i, now := 0, time.Now().UTC(); lines.Len() < growth; i++ {
		writeLine(&lines, now, i, "pod")
	}
	block := lines.Bytes()
	f := Followed{Bytes: int64(len(block)) * growths}
	ticker := time.NewTicker(time.Second / growthRate)
	defer ticker.Stop()
	begun := time.Now()
	for range growths {
		if _, err := log.Write(block); err != nil {
			return f, err
		}
		<-ticker.C
	}
	f.WrittenSeconds = time.Since(begun).Seconds()
	err = out.await(ctx, f.Bytes+int64(len("first\n")))
	f.ShownSeconds = time.Since(begun).Seconds()
	return f, err
}

// awaited is a counter that lets a caller wait for a number of bytes.
type awaited struct {
	*counter
	reached chan struct{}
}

func (a *awaited) Write(p []byte) (int, error) {
	n, err := a.counter.Write(p)
	select {
	case a.reached <- struct{}{}:
	default: // a notification is pending
	}
	return n, err
}

func (a *awaited) await(ctx context.Context, bytes int64) error {
	for a.bytes.Load() < bytes {
		select {
		case <-a.reached:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d bytes were shown: %w", a.bytes.Load(), bytes, ctx.Err())
		}
	}
	return nil
}

// wire forwards connections to target and counts the bytes that target sends.
type wire struct {
	listener net.Listener
	target   string
	bytes    atomic.Int64
	running  sync.WaitGroup
}

func newWire(target string) (*wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: listener, target: target}
	w.running.Go(w.accept)
	return w, nil
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return // closed
		}
		w.running.Go(func() { w.pass(client) })
	}
}

func (w *wire) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return // the client sees that its connection is closed
	}
	defer server.Close()
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	_, _ = io.Copy(io.MultiWriter(client, (*wireCounter)(&w.bytes)), server)
}

type wireCounter atomic.Int64

func (c *wireCounter) Write(p []byte) (int, error) {
	(*atomic.Int64)(c).Add(int64(len(p)))
	return len(p), nil
}

// Close closes the listener and waits until the clients have disconnected.
func (w *wire) Close() {
	w.listener.Close()
	w.running.Wait()
}

func logsTable(l Logs) string {
	var rows [][]string
	var whole float64
	for _, way := range l.Ways {
		whole = way.Seconds // the last way counts, which reads the whole log without swdt
	}
	for _, way := range l.Ways {
		rows = append(rows, []string{
			"`" + way.Way + "`", seconds(way.Seconds), ratio(way.Seconds, whole), grouped(way.Wire),
			megabytes(way.Memory), grouped(way.Lines),
		})
	}
	text := machineLine(l.Machine, l.Repeat) + fmt.Sprintf("\n\n%s bytes, %s lines.\n\n", grouped(l.Bytes),
		grouped(int64(l.Lines))) +
		table([]string{"way", "seconds", "of the last one", "bytes from the node", "memory MB", "lines printed"}, rows)
	return text + fmt.Sprintf("\nFollowed: %s bytes, written in %.1f s (%.0f MB/s), were all on stdout %.1f s after "+
		"the first was written; swdt took %s MB.\n",
		grouped(l.Follow.Bytes), l.Follow.WrittenSeconds, float64(l.Follow.Bytes)/1e6/l.Follow.WrittenSeconds,
		l.Follow.ShownSeconds, megabytes(l.Follow.Memory))
}

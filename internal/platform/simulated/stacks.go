package simulated

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/shimdiag"
)

// containerdStacks is a dump of containerd 1.7.12 under Wine with a pod that runs, reduced to functions and states.
//
//go:embed containerd/stacks.txt
var containerdStacks string

// Signal sets an event. The only events are those of containerd: cmd/containerd/command/main_windows.go.
func (v processesView) Signal(event string) error {
	if err := v.p.check(); err != nil {
		return err
	}
	m := v.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.processes {
		if strings.EqualFold(p.name, "containerd.exe") && strings.EqualFold(event, fmt.Sprintf(`Global\stackdump-%d`, p.pid)) {
			m.spawn(func() { p.dumpStacks() })
			return nil
		}
	}
	return fmt.Errorf("open the event %s: %w", event, fault.ErrNotExist)
}

// dumpStacks writes the goroutines of containerd into its temporary folder: that of SYSTEM, if this Windows has one. containerd
// ignores errors.
func (p *process) dumpStacks() {
	files := p.platform().Files
	folder := `C:\Windows\SystemTemp`
	if info, err := files.Stat(folder); err != nil || !info.Folder {
		folder = `C:\Windows\Temp`
	}
	file, err := files.Create(fmt.Sprintf(`%s\containerd.%d.stacks.log`, folder, p.pid), platform.CreateTruncate)
	if err != nil {
		return
	}
	_, _ = file.Write([]byte(containerdStacks))
	_ = file.Close()
}

// shimStacks is the answer of each shim: that of a shim whose pod runs, reduced to functions and states, after
// microsoft/hcsshim, cmd/containerd-shim-runhcs-v1 of v0.11.4.
const shimStacks = `goroutine 1 [chan receive, 30 minutes]:
main.init.func2(...)
main.main(...)

goroutine 20 [select, 30 minutes]:
github.com/containerd/ttrpc.(*Server).Serve(...)

goroutine 21 [chan receive, 30 minutes]:
github.com/Microsoft/hcsshim/internal/hcs.(*System).waitBackground(...)

goroutine 22 [select, 30 minutes]:
main.(*hcsExec).waitForContainerExit(...)

goroutine 23 [select, 30 minutes]:
main.(*service).waitInternal(...)
main.(*service).Wait(...)
`

// serveShim serves the diagnostic service of a shim on its pipe, until the process ends.
func (m *Machine) serveShim(p *process, id string) {
	path, ok := shimdiag.Pipe("k8s.io", id)
	if !ok {
		return
	}
	listener, err := (&Process{p: p}).ListenPipe(path)
	if err != nil {
		return
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		m.spawn(func() {
			defer conn.Close()
			_ = answerStacks(conn)
		})
	}
}

// answerStacks answers one request: a frame of containerd/ttrpc with its Response (payload = 2), which has the text as field 1.
func answerStacks(conn net.Conn) error {
	const responseType = 2
	header := make([]byte, 10)
	if _, err := io.ReadFull(conn, header); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(header))); err != nil {
		return err
	}
	stacks := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), shimStacks)
	response := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), stacks)
	binary.BigEndian.PutUint32(header, uint32(len(response)))
	header[8] = responseType
	_, err := conn.Write(append(header, response...))
	return err
}

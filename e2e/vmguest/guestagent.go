//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// agentPort is the name of the virtio port on which QEMU's guest agent answers.
const agentPort = "org.qemu.guest_agent.0"

// agentPoll is the time between two checks of a port that has no reader on the other side.
const agentPoll = 250 * time.Millisecond

// serveGuestAgent answers the protocol of QEMU's guest agent: a line of JSON for a line of JSON.
func (g *guest) serveGuestAgent(ctx context.Context) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return
	}
	for _, file := range names {
		if name, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(name)) != agentPort {
			continue
		}
		port, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(file)), os.O_RDWR, 0)
		if err != nil {
			g.console.print("open the guest agent's port: %v", err)
			return
		}
		a := &guestAgent{guest: g, results: map[int]execResult{}, files: map[int]*bytes.Reader{}}
		a.serve(ctx, patient{ctx, port}, port)
	}
}

// patient reads a port. If nothing is connected to the port, a read waits instead of failing.
type patient struct {
	ctx context.Context
	in  io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	for {
		n, err := p.in.Read(b)
		if n > 0 || (err != nil && !errors.Is(err, io.EOF)) {
			return n, err
		}
		if err := wait.For(p.ctx, agentPoll); err != nil {
			return 0, err
		}
	}
}

// guestAgent is one conversation with a client. Commands run one after another.
type guestAgent struct {
	guest    *guest
	results  map[int]execResult
	lastPID  int
	files    map[int]*bytes.Reader // the unread content of open files of the simulated Windows, by handle
	lastFile int
}

type agentRequest struct {
	Execute   string          `json:"execute"`
	Arguments json.RawMessage `json:"arguments"`
}

type agentError struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

// errNoReply is the error of a command that has succeeded and that the guest agent does not answer.
var errNoReply = errors.New("no reply")

func (a *guestAgent) serve(ctx context.Context, in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostBytes)
	for lines.Scan() {
		// A client clears the channel with a byte 0xFF, which is part of no JSON.
		line := lines.Bytes()
		if i := bytes.LastIndexByte(line, 0xFF); i >= 0 {
			line = line[i+1:]
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		reply := a.answer(ctx, line)
		if reply == nil {
			continue
		}
		if _, err := out.Write(reply); err != nil {
			a.guest.console.print("guest agent: %v", err)
		}
	}
	if err := lines.Err(); err != nil {
		a.guest.console.print("guest agent: %v", err)
	}
}

func (a *guestAgent) answer(ctx context.Context, line []byte) []byte {
	var r agentRequest
	if err := json.Unmarshal(line, &r); err != nil {
		return encode(map[string]any{"error": agentError{"GenericError", "invalid JSON"}})
	}
	result, err := a.execute(ctx, r)
	switch {
	case errors.Is(err, errNoReply):
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		err := agentError{"CommandNotFound", "The command " + r.Execute + " has not been found"}
		return encode(map[string]any{"error": err})
	case err != nil:
		return encode(map[string]any{"error": agentError{"GenericError", err.Error()}})
	}
	reply := encode(map[string]any{"return": result})
	if r.Execute == "guest-sync-delimited" {
		reply = append([]byte{0xFF}, reply...)
	}
	return reply
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error": {"class": "GenericError", "desc": "the reply cannot be encoded"}}` + "\n")
	}
	return append(text, '\n')
}

func (a *guestAgent) execute(ctx context.Context, r agentRequest) (any, error) {
	switch r.Execute {
	case "guest-sync", "guest-sync-delimited":
		var args struct {
			ID json.Number `json:"id"`
		}
		if err := json.Unmarshal(r.Arguments, &args); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Execute, err)
		}
		return args.ID, nil
	case "guest-ping":
		return struct{}{}, nil
	case "guest-info":
		return map[string]any{"version": "7.2.22"}, nil
	case "guest-network-get-interfaces":
		return interfaces()
	case "guest-shutdown":
		return nil, a.shutdown(r.Arguments)
	case "guest-exec":
		return a.exec(ctx, r.Arguments)
	case "guest-exec-status":
		return a.execStatus(r.Arguments)
	case "guest-file-open", "guest-file-read", "guest-file-close":
		return a.file(r)
	}
	return nil, errors.ErrUnsupported
}

func (a *guestAgent) shutdown(arguments json.RawMessage) error {
	args := struct {
		Mode string `json:"mode"`
	}{Mode: "powerdown"}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &args); err != nil {
			return fmt.Errorf("guest-shutdown: %w", err)
		}
	}
	how, ok := map[string]int{"powerdown": powerOff, "reboot": restart, "halt": halt}[args.Mode]
	if !ok {
		return fmt.Errorf("guest-shutdown: mode %q", args.Mode)
	}
	go a.guest.end(how)
	return errNoReply
}

// agentInterface is a network card in the reply of guest-network-get-interfaces.
type agentInterface struct {
	Name      string         `json:"name"`
	MAC       string         `json:"hardware-address,omitempty"`
	Addresses []agentAddress `json:"ip-addresses"`
}

type agentAddress struct {
	Address string `json:"ip-address"`
	Type    string `json:"ip-address-type"`
	Prefix  int    `json:"prefix"`
}

// interfaces lists the network cards under the names that Windows would give them.
func interfaces() ([]agentInterface, error) {
	cards, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network cards: %w", err)
	}
	var all []agentInterface
	for _, card := range cards {
		one := agentInterface{Name: "Ethernet", MAC: card.HardwareAddr.String(), Addresses: []agentAddress{}}
		if card.Flags&net.FlagLoopback != 0 {
			one.Name = "Loopback Pseudo-Interface 1"
		}
		addresses, err := card.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list the addresses of %s: %w", card.Name, err)
		}
		for _, a := range addresses {
			ip, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			kind := "ipv6"
			if ip.IP.To4() != nil {
				kind = "ipv4"
			}
			prefix, _ := ip.Mask.Size()
			one.Addresses = append(one.Addresses, agentAddress{ip.IP.String(), kind, prefix})
		}
		all = append(all, one)
	}
	return all, nil
}

// fileRead is the reply of guest-file-read.
type fileRead struct {
	Count   int    `json:"count"`
	Content []byte `json:"buf-b64"`
	End     bool   `json:"eof"`
}

// file opens, reads or closes a file of the simulated Windows.
func (a *guestAgent) file(r agentRequest) (any, error) {
	var args struct {
		Path   string `json:"path"`
		Handle int    `json:"handle"`
		Count  int    `json:"count"`
	}
	if err := json.Unmarshal(r.Arguments, &args); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Execute, err)
	}
	if r.Execute == "guest-file-open" {
		process := a.guest.windows.Spawn("qemu-ga.exe")
		defer process.Kill()
		file, err := process.Platform.Files.Open(args.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Execute, err)
		}
		defer file.Close()
		content, err := io.ReadAll(io.LimitReader(file, mostBytes))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Execute, err)
		}
		a.lastFile++
		a.files[a.lastFile] = bytes.NewReader(content)
		return a.lastFile, nil
	}
	file, ok := a.files[args.Handle]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: no handle %d", r.Execute, args.Handle)
	case r.Execute == "guest-file-close":
		delete(a.files, args.Handle)
		return struct{}{}, nil
	}
	content := make([]byte, max(0, min(args.Count, mostBytes)))
	n, err := io.ReadFull(file, content)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: %w", r.Execute, err)
	}
	return fileRead{Count: n, Content: content[:n], End: err != nil}, nil
}

type execResult struct {
	Exited   bool   `json:"exited"`
	ExitCode int    `json:"exitcode"`
	Out      string `json:"out-data,omitempty"`
	Err      string `json:"err-data,omitempty"`
}

// exec runs a program of the simulated Windows to its end, and keeps its result for guest-exec-status.
func (a *guestAgent) exec(ctx context.Context, arguments json.RawMessage) (any, error) {
	var args struct {
		Path    string   `json:"path"`
		Args    []string `json:"arg"`
		Input   []byte   `json:"input-data"`
		Capture bool     `json:"capture-output"`
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, fmt.Errorf("guest-exec: %w", err)
	}
	process := a.guest.windows.Spawn("qemu-ga.exe")
	defer process.Kill()
	var out, errOut bytes.Buffer
	code, err := process.Platform.Processes.Run(ctx, platform.Command{
		Path: args.Path, Args: args.Args, Stdin: bytes.NewReader(args.Input), Stdout: &out, Stderr: &errOut,
	})
	if err != nil {
		return nil, fmt.Errorf("guest-exec: %w", err)
	}
	result := execResult{Exited: true, ExitCode: code}
	if args.Capture {
		result.Out = base64.StdEncoding.EncodeToString(out.Bytes())
		result.Err = base64.StdEncoding.EncodeToString(errOut.Bytes())
	}
	a.lastPID++
	a.results[a.lastPID] = result
	return map[string]int{"pid": a.lastPID}, nil
}

func (a *guestAgent) execStatus(arguments json.RawMessage) (any, error) {
	var args struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, fmt.Errorf("guest-exec-status: %w", err)
	}
	result, ok := a.results[args.PID]
	if !ok {
		return nil, fmt.Errorf("guest-exec-status: no process %d", args.PID)
	}
	delete(a.results, args.PID)
	return result, nil
}

package pktmonexe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const stateFile = `C:\Windows\Temp\pktmon-state.json`

// state is the state that the driver keeps until the machine restarts.
type state struct {
	Boot    string
	Running bool
	Began   time.Time
	Type    string // all, flow, drop
	Mode    string // circular, real-time, …
	Log     string
	Filters []filter
}

func (p *program) state() (state, error) {
	text, err := p.read(stateFile)
	if err != nil || text == "" {
		return state{Boot: p.boot}, err
	}
	var s state
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return state{}, err
	}
	if s.Boot != p.boot {
		return state{Boot: p.boot}, nil
	}
	return s, nil
}

func (p *program) save(s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := p.write(stateFile+".new", string(text)); err != nil {
		return err
	}
	return p.platform.Files.Rename(stateFile+".new", stateFile, true)
}

// lock waits until no other process uses the state, and locks it. The method unlock releases it.
func (p *program) lock(ctx context.Context) (err error) {
	for {
		p.turn, err = p.platform.Files.Lock(stateFile+".lock", nil)
		var taken *fault.LockedError
		if !errors.As(err, &taken) {
			return err
		}
		if err := wait.For(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func (p *program) unlock() {
	if p.turn != nil {
		_ = p.turn.Unlock() // the end of the process would release the lock, too
		p.turn = nil
	}
}

// note adds a line for this call to the file Calls.
func (p *program) note(args []string) error {
	file, err := p.platform.Files.Create(Calls, platform.CreateAppend)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, "pktmon "+strings.Join(args, " ")+"\r\n")
	return errors.Join(err, file.Close())
}

// read returns the contents of a file, or "" if it is missing.
func (p *program) read(path string) (string, error) {
	file, err := p.platform.Files.Open(path)
	if errors.Is(err, fault.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	return string(data), err
}

func (p *program) write(path, text string) error {
	file, err := p.platform.Files.Create(path, platform.CreateTruncate)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Close())
}

// filter is a filter of the list; all its conditions must hold.
type filter struct {
	Name, Protocol   string
	IPs, Ports, MACs []string
}

const maxFilters = 32

func (p *program) filter(args []string) error {
	s, err := p.state()
	if err != nil || len(args) == 0 {
		return errors.Join(err, fmt.Errorf("filter: list, add or remove?"))
	}
	switch args[0] {
	case "list":
		return p.print("%s", s.list())
	case "remove":
		s.Filters = nil
		return errors.Join(p.save(s), p.print("Removed all filters.\n"))
	case "add":
	default:
		return fmt.Errorf("filter: %q", args)
	}
	f, err := newFilter(args[1:])
	if err != nil {
		return err
	}
	if len(s.Filters) == maxFilters {
		return refuse("Error: only %d filters are possible.", maxFilters)
	}
	s.Filters = append(s.Filters, f)
	return errors.Join(p.save(s), p.print("Filter added.\n"))
}

func newFilter(args []string) (filter, error) {
	flags, plain, err := options(args, names("m mac", "v vlan", "d data-link", "t transport", "i ip", "p port",
		"b heartbeat", "e encap"))
	if err != nil {
		return filter{}, err
	}
	f := filter{Protocol: value(flags["transport"], ""), IPs: flags["ip"], Ports: flags["port"], MACs: flags["mac"]}
	if len(plain) > 1 || len(f.IPs) > 2 || len(f.Ports) > 2 || len(f.MACs) > 2 {
		return filter{}, refuse("Error: too many values: %q", args)
	}
	if len(plain) == 1 {
		f.Name = plain[0]
	}
	return f, nil
}

// list returns a table in pktmon's form.
func (s state) list() string {
	if len(s.Filters) == 0 {
		return "Packet Filters:\n    None\n"
	}
	text := "Packet Filters:\n     # Name                            Protocol IP Address            Port\n     - ---- " +
		"                           -------- ----------            ----\n"
	for i, f := range s.Filters {
		name := f.Name
		if name == "" {
			name = "<empty>"
		}
		text += fmt.Sprintf("    %2d %-31s %-8s %-21s %s\n", i+1, name, f.Protocol, strings.Join(f.IPs, " "),
			strings.Join(f.Ports, " "))
	}
	return text
}

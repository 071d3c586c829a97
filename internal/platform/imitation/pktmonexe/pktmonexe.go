// Package pktmonexe is a pktmon.exe for machines without one: the simulated Windows and Wine. It accepts the options
// that Microsoft documents and refuses others. It keeps filters and session until the machine restarts, as the
// driver does. It applies the filters to a small, fixed traffic, and converts its logs to real pcapng and to text in
// pktmon's form. Its log files have their own format: pcapng, with the reasons of drops as comments.
//
// It cannot show behaviour that only Windows' pktmon has: see docs/guides/capture.md.
//
// Its sources: "pktmon" and its pages on learn.microsoft.com (windows-server/administration/windows-commands) for the
// commands, options and limits of Server 2022 (32 filters; two addresses, ports and MAC addresses in each; a log of 512 MB
// at most); "Pktmon command formatting" for Server 2019, which has comp, format and no pcapng; the lines of packets and
// drops are those that threads and blogs quote (internal/format/pktmontext reads them). The texts of status, list and
// counters, and the exit code 1 of each refusal, are guesses: docs/guesses.md.
//
//   - pktmonexe.go: commands and their options
//   - state.go: the state that the driver keeps
//   - traffic.go: the packets, and which of them the filters select
//   - convert.go: conversion of a log to pcapng and to text
//   - components.go: the components of the network stack that the packets pass
package pktmonexe

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Calls is a file to which each run of the program adds a line.
const Calls = `C:\Windows\Temp\pktmon-calls.txt`

// BuildFile, if it exists, has the build number of the Windows that this pktmon imitates.
const BuildFile = `C:\Windows\Temp\pktmon-build.txt`

const (
	server2019 = 17763
	server2022 = 20348
)

// program is one run of pktmon.
type program struct {
	platform *platform.Platform
	out      io.Writer
	build    int
	boot     string
	turn     platform.Unlocker // the lock on the state while this process uses the state; nil: not held
}

// Main is pktmon's main function; it returns the exit code.
func Main(ctx context.Context, windows *platform.Platform, args []string, out io.Writer) int {
	p := &program{platform: windows, out: out, build: server2022}
	facts, err := windows.Machine.Facts(ctx)
	if err == nil {
		p.boot = facts.BootID
		err = p.lock(ctx)
	}
	if err == nil {
		defer p.unlock()
		err = p.note(args)
	}
	if err == nil {
		var number string
		if number, err = p.read(BuildFile); err == nil && number != "" {
			p.build, err = strconv.Atoi(strings.TrimSpace(number))
		}
	}
	if err == nil {
		err = p.run(ctx, args)
	}
	if err != nil {
		fmt.Fprintf(out, "%v\r\n", err)
		return 1
	}
	return 0
}

// commands returns the commands that this build has.
func (p *program) commands() []string {
	if p.build < server2022 {
		return []string{"filter", "comp", "reset", "start", "stop", "format", "unload", "help"}
	}
	return []string{"filter", "list", "start", "stop", "status", "unload", "counters", "reset", "etl2txt", "etl2pcap",
		"hex2pkt", "help"}
}

func (p *program) run(ctx context.Context, args []string) error {
	if len(args) == 0 || !slices.Contains(p.commands(), args[0]) {
		return refuse("Error: '%s' is not a valid command.", strings.Join(args, " "))
	}
	rest := args[1:]
	if len(rest) == 1 && rest[0] == "help" || args[0] == "help" {
		return p.help(args[0])
	}
	switch args[0] {
	case "filter":
		return p.filter(rest)
	case "status":
		return p.status()
	case "start":
		return p.start(ctx, rest)
	case "stop":
		return p.stop()
	case "etl2pcap":
		return p.etl2pcap(rest)
	case "etl2txt", "format":
		return p.etl2txt(rest)
	case "list":
		return p.list(rest)
	case "comp":
		if len(rest) > 0 && rest[0] == "list" {
			return p.list(rest[1:])
		}
		return p.counters(rest)
	case "counters":
		return p.counters(rest)
	}
	return nil // reset and unload print nothing that swdt uses
}

func (p *program) print(format string, args ...any) error {
	_, err := io.WriteString(p.out, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\r\n"))
	return err
}

func (p *program) help(command string) error {
	if command == "start" && p.build >= server2022 {
		return p.print("pktmon start [--capture ...]\n\n    -m, --log-mode\n        circular      New events overwrite " +
			"the oldest ones.\n        multi-file\n        real-time     Display events and packets on screen at real " +
			"time.\n        memory\n")
	}
	if command != "help" {
		return p.print("pktmon %s\n", command)
	}
	err := p.print("pktmon <command> [OPTIONS | help]\n    Advanced packet capture and event collection.\n\nCommands\n")
	for _, name := range p.commands() {
		err = p.print("    %-12s...\n", name)
	}
	return err
}

// options parses flags, which may have several values. It returns the flags and the words before
// them.
func options(args []string, known map[string]string) (map[string][]string, []string, error) {
	values, plain := map[string][]string{}, []string(nil)
	name := ""
	for _, arg := range args {
		if long, ok := known[arg]; ok {
			name = long
			if _, twice := values[name]; twice {
				return nil, nil, refuse("Error: '%s' was given twice.", arg)
			}
			values[name] = []string{}
			continue
		}
		switch {
		case strings.HasPrefix(arg, "-"):
			return nil, nil, refuse("Error: '%s' is not an option.", arg)
		case name == "":
			plain = append(plain, arg)
		default:
			values[name] = append(values[name], arg)
		}
	}
	return values, plain, nil
}

func names(pairs ...string) map[string]string {
	known := map[string]string{}
	for _, pair := range pairs {
		short, long, _ := strings.Cut(pair, " ")
		if short != "" {
			known["-"+short] = long
		}
		known["--"+long] = long
	}
	return known
}

func (p *program) start(ctx context.Context, args []string) error {
	known := names("c capture", "o counters-only", " comp", " type", " pkt-size", " flags", "f file-name",
		"s file-size", "m log-mode")
	if p.build < server2022 {
		known = names(" etw", "p packet-size", "f file-name", "s file-size", "c component-id", "k keywords")
	}
	flags, plain, err := options(args, known)
	if err != nil || len(plain) > 0 {
		return fmt.Errorf("start: %q %w", plain, err)
	}
	s, err := p.state()
	if err != nil {
		return err
	}
	if s.Running {
		return refuse("Packet Monitor is already started.")
	}
	s.Running, s.Began, s.Type, s.Mode, s.Log = true, time.Now().UTC(), value(flags["type"], "all"),
		value(flags["log-mode"], "circular"), ""
	if s.Mode != "real-time" {
		s.Log = value(flags["file-name"], `C:\Windows\Temp\PktMon.etl`)
		if err := p.write(s.Log, ""); err != nil {
			return err
		}
	}
	if err := p.save(s); err != nil {
		return err
	}
	if s.Mode == "real-time" {
		p.unlock()
		return p.realTime(ctx, s)
	}
	return p.print("Logger Parameters:\n    Logger name:        PktMon\n    Logging mode:       %s\n    Log file:       "+
		"    %s\n\nCollected Data:\n    Packet counters, packet capture\n", s.Mode, s.Log)
}

func value(given []string, otherwise string) string {
	if len(given) == 0 {
		return otherwise
	}
	return given[0]
}

// realTime prints packets until the process is ended, as pktmon does until Ctrl-C.
func (p *program) realTime(ctx context.Context, s state) error {
	for i := 0; ; i++ {
		for _, packet := range s.packets(time.Now().UTC()) {
			if err := p.print("%s", packet.text(p.zone())); err != nil {
				return err
			}
		}
		if wait.For(ctx, 50*time.Millisecond) != nil {
			return nil
		}
	}
}

func (p *program) stop() error {
	s, err := p.state()
	if err != nil {
		return err
	}
	if !s.Running {
		return refuse("Packet Monitor is not running.")
	}
	if s.Log != "" {
		if err := p.writeLog(s); err != nil {
			return err
		}
	}
	log := s.Log
	s.Running, s.Log = false, ""
	if err := p.save(s); err != nil {
		return err
	}
	return p.print("Flushing logs...\nMerging metadata...\nLog file: %s (No events lost)\n", log)
}

func (p *program) status() error {
	s, err := p.state()
	if err != nil {
		return err
	}
	if !s.Running {
		return p.print("Packet Monitor is not running.\n")
	}
	text := "Collected Data:\n    Packet counters, packet capture\n\nCapture Type:\n    " + s.Type +
		"\n\nMonitored Components:\n    All\n\n"
	if s.Log != "" {
		text += "Logger Parameters:\n    Logger name:        PktMon\n    Logging mode:       " + s.Mode +
			"\n    Log file:           " + s.Log + "\n"
	}
	return p.print("%s", text)
}

func (p *program) counters(args []string) error {
	s, err := p.state()
	if err != nil {
		return err
	}
	flows, drops := 0, 0
	for _, packet := range s.packets(s.Began) {
		if packet.reason == "" {
			flows++
		} else {
			drops++
		}
	}
	if slices.Contains(args, "--json") {
		return p.print(`[{"Group":"Ethernet","Components":[{"Name":"vmswitch.sys","Id":12,"Counters":[{"Name":"Upper",`+
			`"Type":"Flow","Inbound":{"Packets":%d},"Outbound":{"Packets":0}},{"Name":"Drop","Type":"Drop",`+
			`"Inbound":{"Packets":%d},"Outbound":{"Packets":0}}]}]}]`+"\n", flows, drops)
	}
	return p.print("Id Name         Counter  Direction  Packets\n-- ----         -------  ---------  -------\n"+
		"12 vmswitch.sys Upper    Rx         %7d\n                Drop     Rx         %7d\n", flows, drops)
}

// refusal is the text that pktmon prints when it refuses a command.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

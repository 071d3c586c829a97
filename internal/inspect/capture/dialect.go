package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Programs is the Processes client of a node, which runs programs there.
type Programs = agentv1.ProcessesClient

// Dialect describes the features of a node's pktmon. swdt reads the features from pktmon's help,
// since they differ between builds of Windows, and updates have added features to older builds.
type Dialect struct {
	Status   bool   // pktmon can report whether it captures
	Capture  bool   // reports whether pktmon has `start --capture`; older builds have `start --etw`
	RealTime bool   // reports whether pktmon can print packets as they are captured
	ToPcap   string // the command that converts a log to pcapng; "" if there is none
	ToText   string // the command that converts a log to text
	Counters []string
	List     []string // the command that lists components; with --json it prints JSON
}

// NoPktmonError reports a node without a packet monitor.
type NoPktmonError struct{}

func (*NoPktmonError) Error() string {
	return "the node has no pktmon.exe, which Windows has since Windows Server 2019 (1809, build 17763)"
}
func (*NoPktmonError) Unwrap() error { return fault.ErrNotSupported }

// Learn detects the features of the node's pktmon. It searches the help only for names of
// commands and options, which are the same in every language.
func Learn(ctx context.Context, programs Programs) (Dialect, error) {
	words, err := helpWords(ctx, programs, "help")
	if err != nil {
		return Dialect{}, err
	}
	d := Dialect{Status: words["status"], Counters: []string{"counters"}, List: []string{"list"}}
	if !words["filter"] && !words["start"] {
		return d, &FailedError{Reason: "the node's `pktmon help` does not list its commands: check that it is " +
			"Windows' pktmon"}
	}
	if !words["counters"] {
		d.Counters = []string{"comp", "counters"}
	}
	if !words["list"] {
		d.List = []string{"comp", "list"}
	}
	for _, name := range []string{"etl2txt", "format"} {
		if words[name] && d.ToText == "" {
			d.ToText = name
		}
	}
	for _, name := range []string{"etl2pcap", "pcapng"} {
		if words[name] && d.ToPcap == "" {
			d.ToPcap = name
		}
	}
	start, err := helpWords(ctx, programs, "start", "help")
	d.RealTime = start["real-time"]
	d.Capture = start["--capture"] || words["etl2pcap"]
	return d, err
}

// helpWords returns the words of a help text, whatever pktmon's exit code is.
func helpWords(ctx context.Context, programs Programs, args ...string) (map[string]bool, error) {
	text, err := output(ctx, programs, args...)
	var ended *captureplan.CommandError
	if err != nil && !errors.As(err, &ended) {
		return nil, err
	}
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return strings.ContainsRune(" \t\r\n|{}[],", r) }) {
		words[word] = true
	}
	return words, nil
}

// output runs pktmon on the node and returns its output.
func output(ctx context.Context, programs Programs, args ...string) (string, error) {
	var out bytes.Buffer
	code, err := command.Run(ctx, programs, &agentv1.RunCommand{Path: captureplan.Program, Args: args},
		command.Streams{Stdout: &out, Stderr: &out})
	if errors.Is(err, fault.ErrNotExist) {
		return "", &NoPktmonError{}
	}
	if err != nil {
		return "", fmt.Errorf("run pktmon %s: %w", strings.Join(args, " "), err)
	}
	text := strings.ReplaceAll(out.String(), "\x00", "")
	if code != 0 {
		return text, &captureplan.CommandError{Args: args, Code: code, Output: text}
	}
	return text, nil
}

// Counters returns pktmon's counters as pktmon prints them: as JSON if json is true, otherwise as a
// table.
func Counters(ctx context.Context, programs Programs, json bool) (string, error) {
	d, err := Learn(ctx, programs)
	if err != nil {
		return "", err
	}
	args := d.Counters
	switch {
	case len(args) == 1 && json:
		args = append(args, "--json")
	case len(args) == 1:
		args = append(args, "--drop-reason")
	case json:
		return "", fmt.Errorf("this Windows' pktmon cannot print counters as JSON, which needs Windows Server 2022 "+
			"(build 20348): use -o text: %w", fault.ErrNotSupported)
	}
	return output(ctx, programs, args...)
}

package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/command"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/pktmon"
)

// Programs runs programs on a node: its Processes client.
type Programs = agentv1.ProcessesClient

// Dialect is what a node's pktmon understands. It says so itself: builds differ,
// and updates have brought parts of it to older ones.
type Dialect struct {
	Status   bool   // it can be asked whether it captures
	Capture  bool   // `start --capture`; before, it was `start --etw`
	RealTime bool   // it shows packets as they come
	ToPcap   string // the command that makes pcapng of a log; empty: there is none
	ToText   string // the command that makes text of a log
	Counters []string
	List     []string // the command that lists components as JSON
}

// NoPktmonError: the node has no packet monitor.
type NoPktmonError struct{}

func (*NoPktmonError) Error() string {
	return "the node has no pktmon.exe, which Windows has since Windows Server 2019 (1809, build 17763)"
}
func (*NoPktmonError) Unwrap() error { return host.ErrNotSupported }

// Learn asks the node's pktmon what it can do. Only names of commands and options
// are looked for, which are the same in every language.
func Learn(ctx context.Context, programs Programs) (Dialect, error) {
	words, err := helpWords(ctx, programs, "help")
	if err != nil {
		return Dialect{}, err
	}
	d := Dialect{Status: words["status"], Counters: []string{"counters"}, List: []string{"list", "--json"}}
	if !words["filter"] && !words["start"] {
		return d, &FailedError{Reason: "the node's `pktmon help` does not name its commands: is that Windows' pktmon?"}
	}
	if !words["counters"] {
		d.Counters = []string{"comp", "counters"}
	}
	if !words["list"] {
		d.List = []string{"comp", "list", "--json"}
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

// helpWords are the words of a help text, whatever pktmon's exit code is.
func helpWords(ctx context.Context, programs Programs, args ...string) (map[string]bool, error) {
	text, err := output(ctx, programs, args...)
	var ended *pktmon.CommandError
	if err != nil && !errors.As(err, &ended) {
		return nil, err
	}
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n|{}[],", r) }) {
		words[word] = true
	}
	return words, nil
}

// output runs pktmon on the node.
func output(ctx context.Context, programs Programs, args ...string) (string, error) {
	var out bytes.Buffer
	code, err := command.Run(ctx, programs, &agentv1.RunCommand{Path: pktmon.Program, Args: args}, command.Streams{Stdout: &out, Stderr: &out})
	if errors.Is(err, host.ErrNotExist) {
		return "", &NoPktmonError{}
	}
	if err != nil {
		return "", fmt.Errorf("run pktmon %s: %w", strings.Join(args, " "), err)
	}
	text := strings.ReplaceAll(out.String(), "\x00", "")
	if code != 0 {
		return text, &pktmon.CommandError{Args: args, Code: code, Output: text}
	}
	return text, nil
}

// Counters is what pktmon counts, as the table that it prints or as its JSON.
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
		return "", fmt.Errorf("this Windows' pktmon counts, but not as JSON: Windows Server 2022 (build 20348) does; use -o text: %w", host.ErrNotSupported)
	}
	return output(ctx, programs, args...)
}

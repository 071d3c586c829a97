package capture

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of `swdt capture -w` and `swdt capture fetch`.
type Report struct {
	Nodes  []NodeReport `json:"nodes"`
	Merged *Written     `json:"merged"` // the merged file of several nodes; null: one node, or no pcapng
}

// NodeReport is the part of the report about one node.
type NodeReport struct {
	fleet.Outcome
	Written
	Reason  string `json:"reason"` // why the capture ended
	Message string `json:"message"`
}

// Written is a file of packets.
type Written struct {
	File string `json:"file"` // "": no file was written
	Count
}

// StdoutFile is the file name that means stdout.
const StdoutFile = "-"

// FileOf returns the path of the file of one node, for a capture on several nodes.
func FileOf(file, node string) string {
	extension := filepath.Ext(file)
	return strings.TrimSuffix(file, extension) + "-" + node + extension
}

// UnwrittenError reports that a file of packets could not be written.
type UnwrittenError struct{ Err error }

func (e *UnwrittenError) Error() string { return "write the capture: " + e.Err.Error() }
func (e *UnwrittenError) Unwrap() error { return e.Err }

// Write writes the captures of the nodes to file. If there are several nodes, it also
// writes a file for each node. If a file cannot be written, Write keeps the fetched files
// of staging in the folder FILE.parts, since the packets are no longer on the nodes. The
// report is complete even if there is an error.
func Write(file string, staging *localfile.Staging, results []fleet.Result[NodeCapture]) (Report, error) {
	report, err := writeAll(file, results)
	var unwritten *UnwrittenError
	if !errors.As(err, &unwritten) {
		return report, err
	}
	kept := file + ".parts"
	if failed := staging.Keep(kept); failed != nil {
		return report, errors.Join(err, fmt.Errorf("keep the fetched packets: %w", failed))
	}
	return report, fmt.Errorf("%w\nthe fetched packets are in %s, as pcapng files of each node", err, kept)
}

func writeAll(file string, results []fleet.Result[NodeCapture]) (Report, error) {
	report := Report{Nodes: []NodeReport{}}
	var parts []Part
	var errs []error
	several := len(results) > 1
	for _, result := range results {
		one := NodeReport{Outcome: result.Outcome(), Reason: result.Value.result.Reason}
		own := file
		if several {
			own = FileOf(file, one.Name)
		}
		switch captured := result.Value; {
		case result.Err != nil:
		case captured.log != "":
			errs = append(errs, keepLog(own, captured, &one))
		default:
			parts = append(parts, captured.part)
			if several {
				one.File = own
				errs = append(errs, one.write(captured.part))
			}
		}
		report.Nodes = append(report.Nodes, one)
	}
	if len(parts) > 0 {
		merged := Written{File: file}
		errs = append(errs, merged.write(parts...))
		if several {
			report.Merged = &merged
		} else {
			report.Nodes[0].Written = merged
		}
	}
	return report, errors.Join(errs...)
}

func (w *Written) write(parts ...Part) (err error) {
	to, err := localfile.Create(w.File)
	if err != nil {
		return &UnwrittenError{err}
	}
	w.Count, err = Merge(to, parts...)
	if err = errors.Join(err, to.Close()); err != nil {
		return &UnwrittenError{err}
	}
	return nil
}

// keepLog keeps pktmon's own log if the node's Windows cannot convert the log to pcapng.
func keepLog(file string, captured NodeCapture, one *NodeReport) error {
	one.Message = "this Windows' pktmon cannot convert to pcapng: convert this log with `pktmon etl2pcap` " +
		"on Windows Server 2022 (build 20348) or later, or with Microsoft's etl2pcapng"
	one.File = strings.TrimSuffix(file, ".pcapng") + ".etl"
	from, err := os.Open(captured.log)
	if err != nil {
		return fmt.Errorf("keep the log: %w", err)
	}
	defer from.Close()
	to, err := localfile.Create(one.File)
	if err != nil {
		return &UnwrittenError{err}
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return &UnwrittenError{err}
	}
	return nil
}

// WriteText writes the number of packets of each node, and of each interface.
func (r Report) WriteText(w *ui.Page) error {
	var rows [][]string
	add := func(name string, f Written, ended string) {
		rows = append(rows, []string{name, strconv.Itoa(f.Packets), strconv.Itoa(f.Drops), f.File, ended})
	}
	for _, n := range r.Nodes {
		if n.File == "" && n.Error != "" {
			continue // the node's error is reported elsewhere
		}
		add(n.Name, n.Written, n.Reason)
	}
	if r.Merged != nil {
		add("all", *r.Merged, "")
	}
	if len(rows) == 0 {
		return nil
	}
	if err := ui.Table(w, []string{"NODE", "PACKETS", "DROPPED", "FILE", "ENDED"}, rows); err != nil {
		return err
	}
	whole := r.Merged
	if whole == nil {
		whole = &r.Nodes[0].Written
	}
	for _, name := range slices.Sorted(maps.Keys(whole.Interfaces)) {
		if _, err := fmt.Fprintf(w, "  %s: %d\n", name, whole.Interfaces[name]); err != nil {
			return err
		}
	}
	for _, n := range r.Nodes {
		if n.File != "" && n.Message != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", n.Name, n.Message); err != nil {
				return err
			}
		}
	}
	return nil
}

// Printer prints packets of several nodes, one per line. It is safe for concurrent use.
type Printer struct {
	Page    *ui.Page
	Several bool               // reports whether each line begins with the name of the node
	Record  func(Record) error // prints a packet for tools; nil: packets are printed as text

	mu sync.Mutex
}

// Record is a packet in the form that is printed for tools.
type Record struct {
	Node string `json:"node"`
	Packet
}

// Print prints a packet of a node.
func (p *Printer) Print(node string, packet Packet) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Record != nil {
		return p.Record(Record{node, packet})
	}
	line := packet.String()
	if p.Several {
		line = node + "  " + line
	}
	_, err := fmt.Fprintln(p.Page, line)
	return err
}

// ReportStream returns the report about packets that were streamed to stdout.
func ReportStream(stream *Stream, results []fleet.Result[NodeCapture]) Report {
	report := Report{Nodes: []NodeReport{}}
	all := Written{File: StdoutFile}
	for _, result := range results {
		captured := result.Value.result
		one := NodeReport{
			Outcome: result.Outcome(), Reason: captured.Reason, Message: missed(captured),
			Written: Written{File: StdoutFile, Count: stream.Count(result.Name())},
		}
		all.Count = all.Plus(one.Count)
		report.Nodes = append(report.Nodes, one)
	}
	if len(results) > 1 {
		report.Merged = &all
	}
	return report
}

// missed returns a text about the gaps between the rounds, or "" if there was only one round. A
// capture to a file has no such gaps.
func missed(r Result) string {
	if r.Rounds.Closed == 0 {
		return ""
	}
	return fmt.Sprintf("%d rounds; between them nothing was captured, for %s in all: -w FILE has no such gaps",
		r.Rounds.Closed+1, r.Rounds.Missed.Round(time.Millisecond))
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/capture"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// captureReport is the result of swdt capture -w.
type captureReport struct {
	Nodes  []capturedNode `json:"nodes"`
	Merged *capturedFile  `json:"merged"` // of several nodes; null: there is one
}

type capturedNode struct {
	frame
	capturedFile
	Reason  string `json:"reason"` // why it ended
	Message string `json:"message"`
}

type capturedFile struct {
	File string `json:"file"` // "": none was written
	capture.Count
}

// writeCaptures writes what the nodes captured, each and all, and tells of it.
func (a *app) writeCaptures(o *captureOptions, results []fleet.Result[nodeCapture]) error {
	report := captureReport{Nodes: []capturedNode{}}
	var parts []capture.Part
	var errs []error
	several := len(results) > 1
	for _, result := range results {
		one := capturedNode{frame: newFrame(result.Name(), resultOK, result.Err), Reason: result.Value.result.Reason}
		switch captured := result.Value; {
		case result.Err != nil:
		case captured.log != "":
			errs = append(errs, a.keepLog(o, captured, several, &one))
		default:
			parts = append(parts, captured.part)
			if several {
				one.File = o.fileOf(one.Name)
				errs = append(errs, a.writeCapture(&one.capturedFile, captured.part))
			}
		}
		report.Nodes = append(report.Nodes, one)
	}
	if len(parts) > 0 {
		merged := capturedFile{File: o.file}
		errs = append(errs, a.writeCapture(&merged, parts...))
		if several {
			report.Merged = &merged
		} else {
			report.Nodes[0].capturedFile = merged
		}
	}
	errs = append(errs, a.print(report, report.text))
	return errors.Join(errors.Join(errs...), fleet.Failures(results))
}

func (a *app) writeCapture(file *capturedFile, parts ...capture.Part) (err error) {
	to, err := localfile.Create(file.File)
	if err != nil {
		return &unwrittenError{err}
	}
	file.Count, err = capture.Merge(to, parts...)
	if err = errors.Join(err, to.Close()); err != nil {
		return &unwrittenError{err}
	}
	return nil
}

// keepLog keeps the log of a Windows that makes no pcapng.
func (a *app) keepLog(o *captureOptions, captured nodeCapture, several bool, one *capturedNode) error {
	one.Message = "this Windows' pktmon makes no pcapng, Windows Server 2022 (build 20348) does: " +
		"there, `pktmon etl2pcap` converts this log, as Microsoft's etl2pcapng does anywhere"
	base := o.file
	if several {
		base = o.fileOf(one.Name)
	}
	one.File = strings.TrimSuffix(base, ".pcapng") + ".etl"
	from, err := os.Open(captured.log)
	if err != nil {
		return fmt.Errorf("keep the log: %w", err)
	}
	defer from.Close()
	to, err := localfile.Create(one.File)
	if err != nil {
		return &unwrittenError{err}
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return &unwrittenError{err}
	}
	return nil
}

func (r captureReport) text(w *ui.Page) error {
	var rows [][]string
	add := func(name string, f capturedFile, ended string) {
		rows = append(rows, []string{name, strconv.Itoa(f.Packets), strconv.Itoa(f.Drops), f.File, ended})
	}
	for _, n := range r.Nodes {
		if n.File == "" && n.Error != "" {
			continue // the error says it
		}
		add(n.Name, n.capturedFile, n.Reason)
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
		whole = &r.Nodes[0].capturedFile
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

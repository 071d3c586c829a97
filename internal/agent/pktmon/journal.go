package pktmon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// journal describes the node's present capture, or the last one if none is running. Its file is replaced as a whole:
// at every moment the file contains either the complete old journal or the complete new one.
type journal struct {
	Plan captureplan.Plan `json:"plan"`
	captureplan.Event
	// Began is the time just before the guardian started pktmon. Plan.For is counted from this
	// time.
	Began time.Time `json:"began,omitzero"`
}

// largestJournal limits how many bytes of a journal are read. Every valid journal is smaller, since
// a plan arrives in one message, and pktmon's output is limited.
const largestJournal = 8 << 20

// damagedError reports that a file is not a journal that swdt wrote. The file's contents are not
// trusted, since an ID becomes part of paths and of a service's command line.
type damagedError struct {
	path string
	err  error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("read the capture's journal %s: it is damaged: %v; the next capture replaces it", e.path, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

// readJournal returns the node's journal; nil if there is none.
func readJournal(files platform.Files) (*journal, error) {
	j, err := readJournalAt(files, layout.CaptureJournal)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	return j, err
}

// readJournalIfWhole returns the node's journal; nil if there is none, or if it is damaged.
func readJournalIfWhole(files platform.Files) (*journal, error) {
	j, err := readJournal(files)
	var damaged *damagedError
	if errors.As(err, &damaged) {
		return nil, nil
	}
	return j, err
}

func readJournalAt(files platform.Files, path string) (*journal, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the capture's journal: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, largestJournal+1))
	if err != nil {
		return nil, fmt.Errorf("read the capture's journal: %w", err)
	}
	j, err := parseJournal(data)
	if err != nil {
		return nil, &damagedError{path, err}
	}
	return j, nil
}

func parseJournal(data []byte) (*journal, error) {
	if len(data) > largestJournal {
		return nil, fmt.Errorf("it has more than %d bytes", largestJournal)
	}
	j := &journal{}
	if err := json.Unmarshal(data, j); err != nil {
		return nil, err
	}
	return j, j.validate()
}

// validate returns nil if swdt can have written this journal. If swdt cannot have written it,
// validate returns the reason.
func (j *journal) validate() error {
	states := []captureplan.State{captureplan.Prepared, captureplan.Filtering, captureplan.Starting,
		captureplan.Capturing, captureplan.Stopping, captureplan.Done}
	switch {
	case !slices.Contains(states, j.State):
		return fmt.Errorf("%q is not a capture's state", j.State)
	case (j.State == captureplan.Done) != (j.Outcome != nil):
		return fmt.Errorf("a capture that is %s has an outcome, or one that is done has none", j.State)
	case j.Closed < 0 || j.Missed < 0 || j.Plan.For < 0:
		return errors.New("a number is negative")
	}
	return j.Plan.Validate()
}

// write writes the journal and returns when it is on the disk.
func (j *journal) write(files platform.Files) error {
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode the capture's journal: %w", err)
	}
	const next = layout.CaptureJournal + ".new"
	file, err := files.Create(next, platform.CreateTruncate)
	if err != nil {
		return fmt.Errorf("write the capture's journal: %w", err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		// Sessions read the journal, and Windows does not replace a file that another process reads.
		err = patience.Patience{Files: files, Limit: patience.Short}.Rename(context.Background(), next, layout.CaptureJournal, true)
	}
	if err != nil {
		return fmt.Errorf("write the capture's journal: %w", err)
	}
	return nil
}

package swap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// record is one line of a journal.
type record struct {
	Time      time.Time `json:"time"`
	State     State     `json:"state"`
	Component string    `json:"component,omitempty"`
	Message   string    `json:"message,omitempty"`

	Plan    *Plan    `json:"plan,omitempty"`    // with Prepared
	Boot    string   `json:"boot,omitempty"`    // the boot id; only in the record with the state Prepared
	Before  *before  `json:"before,omitempty"`  // with the first Stopping
	Outcome *Outcome `json:"outcome,omitempty"` // with Done
}

// before is the state that the transaction must restore, as it was before the
// first stop.
type before struct {
	// Running are the services to stop, in the order of the stops. They start again in reverse
	// order.
	Running []string `json:"running"`
	// CommandLines are the old command lines of the services whose command line the transaction
	// changes, by service.
	CommandLines map[string]string `json:"commandLines,omitempty"`
	// LogSizes are the sizes of the services' log files, in bytes, by path. Bytes beyond the
	// recorded size were written during this transaction.
	LogSizes map[string]int64 `json:"logSizes,omitempty"`
	// Logs identifies these files by path: nssm renames a log at each start, and begins a new one.
	Logs map[string]platform.FileID `json:"logs,omitempty"`
	// Old identifies the binaries at the destinations, by component name. Another account may put a
	// file at a path from which a binary has just been moved; without Old, the transaction could
	// mistake that file for the old binary.
	Old map[string]platform.FileID `json:"old,omitempty"`
	// Unhealthy are the components that failed their health check before the transaction. The
	// transaction does not blame the new binary for such a failure.
	Unhealthy []string `json:"unhealthy,omitempty"`
}

const journalSuffix = ".jsonl"

func journalPath(id string) string { return layout.Journals + `\` + id + journalSuffix }

// validID reports whether id, which comes from the command line, can name nothing but a
// transaction's journal.
func validID(id string) bool {
	allowed := func(r rune) bool {
		return r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z'
	}
	return id != "" && len(id) <= 64 && strings.IndexFunc(id, func(r rune) bool { return !allowed(r) }) < 0
}

// journal is an open journal: its records, and the file to append to.
type journal struct {
	id      string
	records []record
	file    platform.WriteFile
}

func createJournal(files platform.Files, id string, first record) error {
	if err := files.MakeFolder(layout.Journals); err != nil {
		return fmt.Errorf("create the journal's folder: %w", err)
	}
	file, err := files.Create(journalPath(id), platform.CreateNew)
	if err != nil {
		return fmt.Errorf("create the journal: %w", err)
	}
	j := &journal{id: id, file: file}
	if err := errors.Join(j.append(first), file.Close()); err != nil {
		return errors.Join(err, files.Remove(journalPath(id)))
	}
	return nil
}

// openJournal reads a journal and opens it for appending.
func openJournal(files platform.Files, id string) (*journal, error) {
	if _, _, err := readJournal(files, id); err != nil {
		return nil, err
	}
	file, err := appendTo(files, journalPath(id))
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	// Only now no other guardian can write more records.
	records, whole, err := readJournal(files, id)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if !whole { // end the incomplete line that a crash left, so that the next record can be read
		if _, err := file.Write([]byte("\n")); err != nil {
			return nil, errors.Join(fmt.Errorf("continue the journal: %w", err), file.Close())
		}
	}
	return &journal{id: id, records: records, file: file}, nil
}

func appendTo(files platform.Files, path string) (file platform.WriteFile, err error) {
	patient := patience.Patience{Files: files, Limit: patience.Long}
	err = patient.Repeat(context.Background(), func() string { return path }, fault.IsHeld, func() error {
		file, err = files.Create(path, platform.CreateAppend)
		return err
	})
	return file, err
}

// append writes a record and returns when it is on the disk.
func (j *journal) append(r record) error {
	r.Time = time.Now().UTC()
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode a journal record: %w", err)
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.records = append(j.records, r)
	afterRecord()
	return nil
}

// readJournal returns a journal's records and reports whether its last line is complete. A power
// cut may leave an incomplete last line; the action that this line announces was not begun.
func readJournal(files platform.Files, id string) (records []record, whole bool, err error) {
	// A backup may read the journal and let no other program do so.
	f, err := patience.Patience{Files: files, Limit: patience.Long}.Open(context.Background(), journalPath(id))
	if errors.Is(err, fault.ErrNotExist) {
		return nil, false, fmt.Errorf("%w: %s", ErrNoTransaction, id)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the journal: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4<<20))
	if err != nil {
		return nil, false, fmt.Errorf("read the journal: %w", err)
	}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, len(text)+1)
	for scanner.Scan() {
		var r record
		if json.Unmarshal(scanner.Bytes(), &r) == nil {
			records = append(records, r)
		}
	}
	return records, len(text) == 0 || text[len(text)-1] == '\n', nil
}

func (j *journal) plan() *Plan {
	if len(j.records) == 0 {
		return nil
	}
	return j.records[0].Plan
}

func (j *journal) before() *before {
	for _, r := range j.records {
		if r.Before != nil {
			return r.Before
		}
	}
	return nil
}

func (j *journal) outcome() *Outcome { return outcomeOf(j.records) }

func outcomeOf(records []record) *Outcome {
	if n := len(records); n > 0 {
		return records[n-1].Outcome
	}
	return nil
}

// reached reports whether the transaction has been in a state.
func (j *journal) reached(s State) bool { return j.count(s) > 0 }

func (j *journal) count(s State) (n int) {
	for _, r := range j.records {
		if r.State == s {
			n++
		}
	}
	return n
}

// last returns the last record of a state.
func (j *journal) last(s State) (record, bool) {
	for i := len(j.records) - 1; i >= 0; i-- {
		if j.records[i].State == s {
			return j.records[i], true
		}
	}
	return record{}, false
}

// at returns the time at which the transaction first entered a state for this component or service.
// If component is empty, any component or service counts.
func (j *journal) at(s State, component string) (time.Time, bool) {
	for _, r := range j.records {
		if r.State == s && (component == "" || strings.EqualFold(r.Component, component)) {
			return r.Time, true
		}
	}
	return time.Time{}, false
}

// Transaction describes a transaction for sessions.
type Transaction struct {
	ID      string
	Holder  string
	Begun   time.Time
	State   State
	Outcome *Outcome // nil while unfinished
}

// Transactions lists the transactions that are unfinished or not yet
// acknowledged, oldest first. It writes nothing.
func Transactions(files platform.Files) ([]Transaction, error) {
	entries, err := files.List(layout.Journals)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the journals: %w", err)
	}
	var all []Transaction
	for _, entry := range entries {
		id, ok := strings.CutSuffix(baseName(entry.Path), journalSuffix)
		if !ok || !validID(id) {
			continue
		}
		records, _, err := readJournal(files, id)
		if errors.Is(err, ErrNoTransaction) {
			continue // another session acknowledged the transaction after the folder was listed
		}
		if err != nil {
			return nil, err
		}
		all = append(all, describe(id, records))
	}
	return all, nil
}

func describe(id string, records []record) Transaction {
	t := Transaction{ID: id, State: Prepared, Outcome: outcomeOf(records)}
	if len(records) > 0 {
		t.Begun = records[0].Time
		t.State = records[len(records)-1].State
		if plan := records[0].Plan; plan != nil {
			t.Holder = plan.Holder
		}
	}
	return t
}

// Acknowledge writes a finished transaction into the history and deletes its journal, after the guardian has ended. With
// an *UnrecordedError, the journal is deleted and the history lacks the transaction.
func Acknowledge(ctx context.Context, p *platform.Platform, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: %q", ErrNoTransaction, id)
	}
	records, _, err := readJournal(p.Files, id)
	if err != nil {
		return err
	}
	if outcomeOf(records) == nil && len(records) > 0 {
		return fmt.Errorf("%w: %s", ErrBusy, id)
	}
	if err := guardianOf(Machine{Platform: p}).AwaitRemoved(ctx); err != nil {
		return err
	}
	unrecorded := remember(ctx, p.Files, id, records)
	if unrecorded != nil && ctx.Err() != nil {
		return ctx.Err() // a later contact records it
	}
	patient := patience.Patience{Files: p.Files, Limit: patience.Short}
	if err := patient.Remove(ctx, journalPath(id)); err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("remove the journal: %w", err)
	}
	if unrecorded != nil {
		return &UnrecordedError{Err: unrecorded}
	}
	return nil
}

func baseName(path string) string {
	return path[strings.LastIndexAny(path, `\/`)+1:]
}

func samePath(a, b string) bool {
	slashes := strings.NewReplacer("/", `\`)
	return strings.EqualFold(slashes.Replace(a), slashes.Replace(b))
}

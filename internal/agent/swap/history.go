package swap

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/winpath"
)

// Past is a transaction in the history. The history stores Past and PastComponent as JSON, which agents of other builds
// read, too.
type Past struct {
	Number int    `json:"number"` // counts the transactions of the node, from 1 on
	ID     string `json:"id"`
	// Journal is set if the journal still exists: the transaction has not ended, or its outcome is not collected yet.
	Journal         bool            `json:"-"`
	Holder          string          `json:"holder"`
	Begun           time.Time       `json:"begun"`
	Ended           time.Time       `json:"ended"`  // zero: it has not ended
	Result          Result          `json:"result"` // "": it has not ended
	Message         string          `json:"message,omitempty"`
	FailedComponent string          `json:"failedComponent,omitempty"`
	Components      []PastComponent `json:"components"`
}

// PastComponent is a component of a transaction in the history.
type PastComponent struct {
	Name            string `json:"name"`
	Destination     string `json:"destination"`
	Service         string `json:"service,omitempty"`
	Action          Action `json:"action,omitempty"` // "": the transaction has not ended
	Brought         bool   `json:"brought,omitempty"`
	CommandLine     bool   `json:"commandLine,omitempty"` // that of the service changed; false also in rows of older agents
	SHA256          string `json:"sha256,omitempty"`      // of the brought file; without one, of the file at the destination
	PreviousSHA256  string `json:"previousSha256,omitempty"`
	PreviousVersion string `json:"previousVersion,omitempty"`
	Version         string `json:"version,omitempty"` // that the brought file reported; "": unknown, or it was put back
}

// UnrecordedError reports that a transaction ended, and that the history lacks it.
type UnrecordedError struct{ Err error }

func (e *UnrecordedError) Error() string { return "write the history: " + e.Err.Error() }
func (e *UnrecordedError) Unwrap() error { return e.Err }

// These constants bound the history. The names and texts of a row come from a node file.
const (
	mostPast       = 200       // rows; the oldest go first
	mostPastBytes  = 256 << 10 // of the file
	mostParts      = 32        // components of a row
	longestPast    = 300       // bytes of a holder or a version in a row
	longestMessage = 1000      // bytes of a row's message
	// longestName and longestDestination bound, in bytes, what is never shortened: another name is another file.
	longestName        = 1 << 10
	longestDestination = 4 << 10
	largestNumber      = 1 << 30
	// historyLimit bounds the wait for another session that adds a row.
	historyLimit = 5 * time.Second
)

// History returns the transactions in the history, and behind them those whose journal exists, oldest first. It writes
// nothing.
func History(ctx context.Context, files platform.Files) ([]Past, error) {
	// The journals are read first: another session may delete one at any time, and its row is in the history before that.
	journals, err := pastJournals(files)
	if err != nil {
		return nil, err
	}
	past, err := readHistory(ctx, files)
	if err != nil {
		return nil, err
	}
	for _, row := range journals {
		if at, known := indexOfPast(past, row.ID); known {
			// Either the power was cut before the journal was deleted, or another session has deleted it just now.
			_, err := files.Stat(journalPath(row.ID))
			past[at].Journal = err == nil
			continue
		}
		row.Number = nextNumber(past)
		past = append(past, row)
	}
	return past, nil
}

// pastJournals returns the rows of the transactions whose journal exists, without their numbers.
func pastJournals(files platform.Files) ([]Past, error) {
	journals, err := Transactions(files)
	if err != nil {
		return nil, err
	}
	var past []Past
	for _, t := range journals {
		records, _, err := readJournal(files, t.ID)
		if errors.Is(err, ErrNoTransaction) { // acknowledged meanwhile: the history has it
			continue
		}
		if err != nil {
			return nil, err
		}
		if !begun(records) {
			continue
		}
		if row := pastOf(t.ID, records); row.problem() == "" {
			row.Journal = true
			past = append(past, row)
		}
	}
	return past, nil
}

// begun reports whether a journal has a plan: without one, the power was cut before the transaction began.
func begun(records []record) bool { return len(records) > 0 && records[0].Plan != nil }

// remember adds the transaction to the history, unless the history has it already.
func remember(ctx context.Context, files platform.Files, id string, records []record) error {
	if !begun(records) {
		return nil
	}
	row := pastOf(id, records)
	if problem := row.problem(); problem != "" {
		return fmt.Errorf("transaction %s cannot have a row: %s", id, problem)
	}
	lock, err := lockHistory(ctx, files)
	if err != nil {
		return err
	}
	past, err := readHistory(ctx, files)
	if _, known := indexOfPast(past, id); err == nil && !known {
		row.Number = nextNumber(past)
		err = writeHistory(ctx, files, append(past, row))
	}
	return errors.Join(err, lock.Unlock())
}

func lockHistory(ctx context.Context, files platform.Files) (lock platform.Unlocker, err error) {
	err = wait.Condition{
		Name: "another session to write the history", Interval: 10 * time.Millisecond, MaxInterval: 200 * time.Millisecond,
		Limit: historyLimit,
		Look: func(context.Context) error {
			var failed error
			lock, failed = files.Lock(layout.HistoryLock, nil)
			var locked *fault.LockedError
			return wait.StopIf(!errors.As(failed, &locked), failed)
		},
	}.Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock the history: %w", err)
	}
	return lock, nil
}

// pastOf returns the row of a transaction, without its number.
func pastOf(id string, records []record) Past {
	plan, last := records[0].Plan, records[len(records)-1]
	row := Past{
		ID: id, Holder: cut(plan.Holder, longestPast), Begun: records[0].Time, Components: []PastComponent{},
	}
	actions, versions := map[string]Action{}, map[string]string{}
	if outcome := last.Outcome; outcome != nil {
		row.Ended, row.Result, row.Message = last.Time, outcome.Result, cut(outcome.Message, longestMessage)
		row.FailedComponent = outcome.FailedComponent
		for _, c := range outcome.Components {
			actions[c.Name], versions[c.Name] = c.Action, c.Version
		}
	}
	for _, c := range plan.Components {
		part := PastComponent{
			Name: c.Name, Destination: strings.ReplaceAll(c.Destination, "/", `\`), Service: c.Service,
			Action: actions[c.Name], Brought: c.swaps(), CommandLine: c.CommandLine != "", SHA256: c.SHA256,
			PreviousSHA256: c.PreviousSHA256, PreviousVersion: cut(c.PreviousVersion, longestPast),
			Version: cut(versions[c.Name], longestPast),
		}
		if !c.swaps() {
			part.SHA256 = c.PreviousSHA256
		}
		row.Components = append(row.Components, part)
	}
	return row
}

// problem returns the reason why the history, or a reply with it, cannot have this row; "" if both can.
func (p Past) problem() string {
	switch {
	case len(p.Components) > mostParts:
		return fmt.Sprintf("it has %d components, more than %d", len(p.Components), mostParts)
	case !isLine(p.FailedComponent):
		return fmt.Sprintf("%.100q is no name", p.FailedComponent)
	case len(p.Holder) > longestPast || len(p.Message) > longestMessage:
		return "its texts are too long"
	case !isTime(p.Begun) || !isTime(p.Ended):
		return "it has a time before 1601"
	}
	for _, c := range p.Components {
		if problem := c.problem(); problem != "" {
			return fmt.Sprintf("component %.100q: %s", c.Name, problem)
		}
	}
	return ""
}

func (c PastComponent) problem() string {
	switch problem := winpath.Problem(c.Destination); {
	case problem != "":
		return fmt.Sprintf("its path is %.100q, %s", c.Destination, problem)
	case len(c.Destination) > longestDestination:
		return fmt.Sprintf("its path has %d bytes, more than %d", len(c.Destination), longestDestination)
	case c.Name == "" || !isLine(c.Name) || !isLine(c.Service):
		return fmt.Sprintf("its name, or that of its service %.100q, is empty, too long, or has control characters", c.Service)
	case !isHash(c.SHA256) || !isHash(c.PreviousSHA256):
		return "a hash is no SHA-256"
	case len(c.PreviousVersion) > longestPast || len(c.Version) > longestPast:
		return "its versions are too long"
	}
	return ""
}

func isLine(text string) bool {
	return len(text) <= longestName && strings.IndexFunc(text, winpath.IsControl) < 0
}

// isHash reports whether a text is a SHA-256 in lower-case hexadecimal, or empty.
func isHash(text string) bool {
	return text == "" || len(text) == hex.EncodedLen(sha256.Size) && strings.Trim(text, "0123456789abcdef") == ""
}

// isTime reports whether Windows can express a time, or it is zero.
func isTime(t time.Time) bool { return t.IsZero() || t.Year() >= 1601 }

// cut shortens a text to a number of bytes, without half a character at the end.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}

func indexOfPast(past []Past, id string) (at int, known bool) {
	for i := range past {
		if past[i].ID == id {
			return i, true
		}
	}
	return 0, false
}

func nextNumber(past []Past) int {
	if len(past) == 0 {
		return 1
	}
	return past[len(past)-1].Number + 1
}

// readHistory returns the rows of the file, oldest first. It leaves out each line that is not a row of a transaction with
// a number above that of the row before it.
func readHistory(ctx context.Context, files platform.Files) ([]Past, error) {
	file, err := patience.Patience{Files: files, Limit: patience.Short}.Open(ctx, layout.History)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 2*mostPastBytes))
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	var past []Past
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, len(text)+1)
	for scanner.Scan() {
		var row Past
		if json.Unmarshal(scanner.Bytes(), &row) != nil || !validID(row.ID) || row.problem() != "" {
			continue
		}
		_, known := indexOfPast(past, row.ID)
		if !known && row.Number >= nextNumber(past) && row.Number < largestNumber {
			past = append(past, row)
		}
	}
	return past[max(0, len(past)-mostPast):], nil
}

// writeHistory replaces the file by one with the newest of the rows. After a power cut, the file is the old or the new
// one.
func writeHistory(ctx context.Context, files platform.Files, past []Past) (err error) {
	text, err := encodeHistory(past[max(0, len(past)-mostPast):])
	if err != nil {
		return err
	}
	const temporary = layout.History + ".new"
	file, err := files.Create(temporary, platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = patience.Patience{Files: files, Limit: patience.Short}.Rename(ctx, temporary, layout.History, true)
	}
	if err != nil {
		return errors.Join(err, files.Remove(temporary))
	}
	return nil
}

// encodeHistory returns the newest rows that fit into the file.
func encodeHistory(past []Past) ([]byte, error) {
	var text []byte
	for i := len(past) - 1; i >= 0; i-- {
		line, err := json.Marshal(past[i])
		if err != nil {
			return nil, fmt.Errorf("encode a row of the history: %w", err)
		}
		if len(text) > 0 && len(text)+len(line)+1 > mostPastBytes {
			break
		}
		text = append(append(line, '\n'), text...)
	}
	return text, nil
}

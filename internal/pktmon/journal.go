package pktmon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// journal is the capture that the node has, or had last. It is replaced as a
// whole: at every moment the file has all of the old one or all of the new one.
type journal struct {
	Plan Plan `json:"plan"`
	Event
	// Began is when the guardian set out, for the capture's end.
	Began time.Time `json:"began,omitzero"`
}

// readJournal gives nil where there is none.
func readJournal(files host.Files) (*journal, error) {
	file, err := files.Open(layout.CaptureJournal)
	if errors.Is(err, host.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the capture's journal: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the capture's journal: %w", err)
	}
	j := &journal{}
	if err := json.Unmarshal(data, j); err != nil {
		return nil, fmt.Errorf("read the capture's journal %s: %w", layout.CaptureJournal, err)
	}
	return j, nil
}

// write has the journal on the disk when it returns.
func (j *journal) write(files host.Files) error {
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode the capture's journal: %w", err)
	}
	const next = layout.CaptureJournal + ".new"
	file, err := files.Create(next, host.CreateTruncate)
	if err != nil {
		return fmt.Errorf("write the capture's journal: %w", err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = replaceJournal(files, next)
	}
	if err != nil {
		return fmt.Errorf("write the capture's journal: %w", err)
	}
	return nil
}

// replaceTries bounds how often the journal's replacement is tried: Windows does
// not replace a file that somebody reads, and a session looks at this one.
const replaceTries = 100

func replaceJournal(files host.Files, next string) (err error) {
	for range replaceTries {
		err = files.Rename(next, layout.CaptureJournal, true)
		if !errors.Is(err, host.ErrPermission) && !errors.Is(err, host.ErrInUse) {
			return err
		}
		timer := time.NewTimer(pollInterval / 10)
		<-timer.C
	}
	return err
}

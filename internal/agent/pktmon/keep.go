package pktmon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	// quickly is a period after a capture. During this period, the guardian checks at intervals of
	// pollInterval whether the packets were fetched, since a session usually fetches them at once.
	// Later, the guardian checks at intervals of `leisurely`.
	quickly   = 10 * time.Second
	leisurely = 2 * time.Second
)

// keepFile returns the lock file of the session that fetches a capture's packets. It is not the lock of the capture
// itself, since the next capture may begin while the packets are fetched.
func keepFile(id string) string { return layout.Captures + `\` + id + ".keep" }

// Keep holds the files of a capture for the session that fetches them. Until Unlock or the end of
// the session's process, neither the next capture nor a guardian removes the files.
func Keep(files platform.Files, id string) (platform.Unlocker, error) {
	if err := (captureplan.Plan{ID: id, Start: []string{""}}).Validate(); err != nil {
		return nil, err
	}
	kept, err := files.Lock(keepFile(id), nil)
	var locked *fault.LockedError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("another swdt is fetching the packets of the capture %s: %w", id, fault.ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("hold the packets of the capture %s: %w", id, err)
	}
	return &keep{kept, files, id}, nil
}

// keep is a locked keepFile, which is removed at Unlock.
type keep struct {
	lock  platform.Unlocker
	files platform.Files
	id    string
}

// Unlock releases the lock and removes the lock file. It ignores a failed removal: another process
// may be reading the lock file, and the next capture removes the file.
func (k *keep) Unlock() error {
	err := k.lock.Unlock()
	_ = k.files.Remove(keepFile(k.id))
	return err
}

// isKept reports whether a session is fetching the capture's packets.
func isKept(files platform.Files, id string) bool {
	if _, err := files.Stat(keepFile(id)); err != nil {
		return false
	}
	lock, err := files.Lock(keepFile(id), nil)
	if err != nil {
		return true
	}
	return lock.Unlock() != nil
}

// setAside copies the result of the previous capture to its own file if a session still fetches
// that capture's packets. The session polls for the result only at intervals, and may not have read
// the result yet.
func setAside(files platform.Files) error {
	j, err := readJournalIfWhole(files)
	if err != nil || j == nil || !isKept(files, j.Plan.ID) {
		return err
	}
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	file, err := files.Create(captureplan.ResultFile(j.Plan.ID), platform.CreateTruncate)
	if err != nil {
		return fmt.Errorf("keep the result of the previous capture: %w", err)
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// journalOf returns the journal of one capture: the node's present journal, or the journal that
// setAside copied.
func journalOf(files platform.Files, id string) (*journal, error) {
	j, err := readJournal(files)
	if err != nil || j != nil && j.Plan.ID == id {
		return j, err
	}
	j, err = readJournalAt(files, captureplan.ResultFile(id))
	if errors.Is(err, fault.ErrNotExist) {
		return nil, fmt.Errorf("this node has no capture %s: %w", id, err)
	}
	return j, err
}

// captureOf returns the ID of the capture to which a file in the folder of the captures belongs. It returns "" for
// the folder's lock and journal, and for a folder.
func captureOf(file platform.FileInfo) string {
	name := file.Path[strings.LastIndexByte(file.Path, '\\')+1:]
	id, _, _ := strings.Cut(name, ".")
	if file.Folder || strings.EqualFold(file.Path, layout.CaptureLock) ||
		strings.EqualFold(file.Path, layout.CaptureJournal) {
		return ""
	}
	return id
}

// remaining returns the files of a capture that are still on the node, or, if id is empty, the files of all captures.
func remaining(files platform.Files, id string) (paths []string, err error) {
	list, err := files.List(layout.Captures)
	if err != nil {
		return nil, fmt.Errorf("list the files of captures: %w", err)
	}
	for _, file := range list {
		if of := captureOf(file); of != "" && (id == "" || of == id) {
			paths = append(paths, file.Path)
		}
	}
	return paths, nil
}

// remove removes files, except those that another process is reading.
func remove(files platform.Files, paths []string) error {
	for _, path := range paths {
		err := files.Remove(path)
		if err != nil && !errors.Is(err, fault.ErrNotExist) && !errors.Is(err, fault.ErrInUse) {
			return fmt.Errorf("remove an older capture: %w", err)
		}
	}
	return nil
}

// forget removes the files of captures that no session fetches.
func forget(files platform.Files) error {
	list, err := files.List(layout.Captures)
	if err != nil {
		return fmt.Errorf("list the files of older captures: %w", err)
	}
	kept := map[string]bool{}
	var paths []string
	for _, file := range list {
		id := captureOf(file)
		if id == "" {
			continue
		}
		if _, known := kept[id]; !known {
			kept[id] = isKept(files, id)
		}
		if !kept[id] {
			paths = append(paths, file.Path)
		}
	}
	return remove(files, paths)
}

// linger waits until the capture's packets are no longer on the node: their session has fetched
// them, the next capture has removed them, or linger removes them after KeepFor. If linger cannot
// check, for example because another process reads the journal exclusively, it tries again. If it
// still cannot check at twice KeepFor after the capture, it leaves the packets to the next capture.
// linger returns false if ctx ends first; the guardian's service must then continue at the next
// boot.
func linger(ctx context.Context, files platform.Files, id string) bool {
	for begun := time.Now(); ; {
		age := time.Since(begun)
		gone, err := packetsGone(files, id, age >= captureplan.KeepFor)
		if gone || err != nil && age >= 2*captureplan.KeepFor {
			return true
		}
		poll := leisurely
		if age < quickly {
			poll = pollInterval
		}
		if wait.For(ctx, poll) != nil {
			return false
		}
	}
}

// packetsGone reports whether the guardian of a capture need no longer stay for its packets. If the
// packets are overdue and no session fetches them, packetsGone removes the packets.
func packetsGone(files platform.Files, id string, overdue bool) (bool, error) {
	// If the journal names another capture, that capture has removed the packets. If the journal
	// cannot be read, the files decide.
	if j, err := readJournal(files); err == nil && (j == nil || j.Plan.ID != id) {
		return true, nil
	}
	paths, err := remaining(files, id)
	switch {
	case err != nil:
		return false, err
	case !hasPackets(paths):
		_ = remove(files, paths) // the next capture removes a lock file that is still locked
		return true, nil
	case overdue && !isKept(files, id):
		err := remove(files, paths)
		return err == nil, err
	}
	return false, nil
}

// hasPackets reports whether a capture's files include any file other than its lock and the copy of
// its journal.
func hasPackets(paths []string) bool {
	for _, path := range paths {
		if !strings.HasSuffix(path, ".keep") && !strings.HasSuffix(path, ".json") {
			return true
		}
	}
	return false
}

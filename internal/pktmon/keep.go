package pktmon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// KeepFor is how long the packets of a capture stay on the node if no session
	// fetches them: one whose connection broke can come back for them.
	KeepFor = time.Hour
	// quickly is how long a guardian looks often whether its packets were fetched:
	// nearly always they are at once.
	quickly   = 10 * time.Second
	leisurely = 2 * time.Second
)

// keepFile is the lock of the session that fetches a capture's packets. It is not the
// capture's own lock: the next capture may begin meanwhile.
func keepFile(id string) string { return layout.Captures + `\` + id + ".keep" }

// resultFile has the journal of a capture whose session may not have read its end when
// the next capture's journal replaced it.
func resultFile(id string) string { return layout.Captures + `\` + id + ".json" }

// Keep holds the files of a capture for the session that fetches them, until Unlock or
// the end of its process: neither the next capture nor a guardian removes them.
func Keep(files host.Files, id string) (host.Unlocker, error) {
	if err := (Plan{ID: id, Start: []string{""}}).validate(); err != nil {
		return nil, err
	}
	kept, err := files.Lock(keepFile(id), nil)
	var locked *host.LockedError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("another swdt fetches the packets of the capture %s: %w", id, host.ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("hold the packets of the capture %s: %w", id, err)
	}
	return &keep{kept, files, id}, nil
}

// keep is a held keepFile, which goes with the hold.
type keep struct {
	lock  host.Unlocker
	files host.Files
	id    string
}

// Unlock lets go. That the file cannot be removed does not matter: another process
// looks at it, and the next capture removes it.
func (k *keep) Unlock() error {
	err := k.lock.Unlock()
	_ = k.files.Remove(keepFile(k.id))
	return err
}

// isKept reports whether a session fetches the capture's packets.
func isKept(files host.Files, id string) bool {
	if _, err := files.Stat(keepFile(id)); err != nil {
		return false
	}
	lock, err := files.Lock(keepFile(id), nil)
	if err != nil {
		return true
	}
	return lock.Unlock() != nil
}

// setAside keeps the result of the capture before this one for its session, which looks
// for it only now and then.
func setAside(files host.Files) error {
	j, err := readJournal(files)
	if err != nil || j == nil || !isKept(files, j.Plan.ID) {
		return err
	}
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	file, err := files.Create(resultFile(j.Plan.ID), host.CreateTruncate)
	if err != nil {
		return fmt.Errorf("keep the result of the capture before: %w", err)
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// journalOf reads the journal of one capture: the node's, or the one set aside.
func journalOf(files host.Files, id string) (*journal, error) {
	j, err := readJournal(files)
	if err != nil || j != nil && j.Plan.ID == id {
		return j, err
	}
	file, err := files.Open(resultFile(id))
	if err != nil {
		return nil, fmt.Errorf("the capture %s is not this node's: %w", id, host.ErrNotExist)
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the result of the capture %s: %w", id, err)
	}
	j = &journal{}
	if err := json.Unmarshal(data, j); err != nil {
		return nil, fmt.Errorf("read the result of the capture %s: %w", id, err)
	}
	return j, nil
}

// captureOf returns the capture that a file of the captures' folder belongs to; empty
// for the folder's own files.
func captureOf(file host.FileInfo) string {
	name := file.Path[strings.LastIndexByte(file.Path, '\\')+1:]
	id, _, _ := strings.Cut(name, ".")
	if file.Folder || strings.EqualFold(file.Path, layout.CaptureLock) || strings.EqualFold(file.Path, layout.CaptureJournal) {
		return ""
	}
	return id
}

// left returns the files of a capture, or of all (""), that are still on the node.
func left(files host.Files, id string) (paths []string, err error) {
	list, err := files.List(layout.Captures)
	if err != nil {
		return nil, fmt.Errorf("look for files of captures: %w", err)
	}
	for _, file := range list {
		if of := captureOf(file); of != "" && (id == "" || of == id) {
			paths = append(paths, file.Path)
		}
	}
	return paths, nil
}

// remove removes files. One that is read just now is left.
func remove(files host.Files, paths []string) error {
	for _, path := range paths {
		err := files.Remove(path)
		if err != nil && !errors.Is(err, host.ErrNotExist) && !errors.Is(err, host.ErrInUse) {
			return fmt.Errorf("remove an older capture: %w", err)
		}
	}
	return nil
}

// forget removes the files of captures that no session fetches.
func forget(files host.Files) error {
	list, err := files.List(layout.Captures)
	if err != nil {
		return fmt.Errorf("look for files of older captures: %w", err)
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

// linger waits until the capture's packets are gone from the node: fetched, removed by
// the next capture, or by itself after KeepFor. It reports false if it was told to end
// before: the guardian's service has then still something to do, at the next boot.
func linger(ctx context.Context, files host.Files, id string) bool {
	for begun := time.Now(); ; {
		j, err := readJournal(files)
		if err != nil || j == nil || j.Plan.ID != id {
			return true
		}
		paths, err := left(files, id)
		if err != nil || !hasPackets(paths) {
			_ = remove(files, paths) // a lock that is still held goes with the next capture
			return true
		}
		if time.Since(begun) >= KeepFor && !isKept(files, id) && remove(files, paths) == nil {
			return true
		}
		poll := leisurely
		if time.Since(begun) < quickly {
			poll = pollInterval
		}
		if wait.For(ctx, poll) != nil {
			return false
		}
	}
}

// hasPackets reports whether one of a capture's files is more than its lock.
func hasPackets(paths []string) bool {
	for _, path := range paths {
		if !strings.HasSuffix(path, ".keep") && !strings.HasSuffix(path, ".json") {
			return true
		}
	}
	return false
}

// Package leftover removes the namespaces that runs of e2e.test and of swdt itself have made and not
// removed, since they were interrupted or killed.
//
//   - leftover.go: the record of a run, and the records of runs that have ended
//   - namespaces.go: the namespaces of one run of e2e.test
//   - own.go: the namespace of one run of swdt itself
//
// e2e.test labels each namespace that it makes with e2e-run and an ID that it chooses when it starts. It
// prints the ID before it makes a namespace, into a file that swdt has named in a record before the start.
// So at every moment, a record leads to the namespaces. A record has a lock, which swdt and e2e.test both
// hold; a lock that is free belongs to a run that has ended. swdt chooses the name of its own namespace,
// and writes it into the record before it makes the namespace.
package leftover

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	recordEnd, lockEnd = ".json", ".lock"
	// maxRecord bounds the size of a record, in bytes.
	maxRecord = 64 << 10
	// keepRecords is how long swdt keeps a record if no command could remove its namespaces.
	keepRecords = 30 * 24 * time.Hour
)

// Store has the records of this user's runs.
type Store struct{ folder string }

// OpenDefault returns the store in the user's folder for data.
func OpenDefault() (*Store, error) {
	data, err := localfile.DataFolder()
	if err != nil {
		return nil, err
	}
	return Open(filepath.Join(data, "swdt", "e2e"))
}

// Open returns the store in a folder, and makes the folder.
func Open(folder string) (*Store, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the records of runs: %w", err)
	}
	return &Store{folder: folder}, nil
}

// Run is one run of e2e.test, or of swdt itself.
type Run struct {
	Server string    `json:"server"` // the API server's URL
	Output string    `json:"output"` // the file with the output of e2e.test; "" for a run of swdt itself
	Begun  time.Time `json:"begun"`
	// ID is the value of the label e2e-run; "" until swdt has read it from the output.
	ID string `json:"id"`
	// Namespace is the namespace of a run of swdt itself; "" for a run of e2e.test.
	Namespace string `json:"namespace"`

	path string
	lock *os.File
}

// Begin records a run of e2e.test that is about to start.
func (s *Store) Begin(server, output string) (*Run, error) {
	return s.begin(Run{Server: server, Output: output})
}

// begin records a run with these fields.
func (s *Store) begin(run Run) (*Run, error) {
	path := filepath.Join(s.folder, randomHex(8))
	lock, err := localfile.Claim(path + lockEnd)
	if err != nil {
		return nil, fmt.Errorf("record the run: %w", err)
	}
	r := &run
	r.Begun, r.path, r.lock = time.Now(), path, lock
	if err := r.save(); err != nil {
		lock.Close()
		_ = os.Remove(path + lockEnd)
		return nil, fmt.Errorf("record the run: %w", err)
	}
	return r, nil
}

// randomHex returns random bytes in hexadecimal.
func randomHex(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails
	return hex.EncodeToString(random)
}

// Lock returns the lock of the run, for e2e.test to hold it, too.
func (r *Run) Lock() *os.File { return r.lock }

func (r *Run) save() error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return localfile.Replace(r.path+recordEnd, text)
}

// End removes the namespaces of the run, and its record unless that failed. It returns the names of the
// namespaces.
func (r *Run) End(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	defer r.lock.Close()
	removed, err := r.clean(ctx, c)
	if err == nil {
		err = r.forget()
	}
	return removed, err
}

// clean removes the namespaces of the run.
func (r *Run) clean(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	if r.Namespace != "" {
		return removeOwn(ctx, c, r.Namespace, r.Begun)
	}
	if r.ID == "" {
		id, err := suite.RunID(r.Output)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("find the namespaces of a run: %w", err)
		}
		if id == "" { // e2e.test ended before it made a namespace
			return nil, nil
		}
		r.ID = id
		if err := r.save(); err != nil {
			return nil, fmt.Errorf("record the run: %w", err)
		}
	}
	return remove(ctx, c, r.ID, r.Begun)
}

func (r *Run) forget() error {
	if err := os.Remove(r.path + recordEnd); err != nil {
		return fmt.Errorf("remove the record of the run: %w", err)
	}
	return os.Remove(r.path + lockEnd)
}

// Tidy removes the namespaces that killed runs on this cluster have left, and returns their names. Runs
// that still work are left alone. A failure is a warning, since the present command does not depend on
// the removal.
func (s *Store) Tidy(ctx context.Context, c *cluster.Cluster, r ui.Reporter) (removed []string) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		r.Warn("look for runs that were killed: %v", err)
		return nil
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), recordEnd)
		if !ok || ctx.Err() != nil {
			continue
		}
		names, err := s.tidy(ctx, c, filepath.Join(s.folder, name))
		if err != nil {
			r.Warn("remove the namespaces of a run that was killed: %v", err)
		}
		for _, n := range names {
			r.Info("removed namespace %s, which a killed run has left", n)
		}
		removed = append(removed, names...)
	}
	return removed
}

// tidy removes the namespaces of one run, if it has ended and was on this cluster.
func (s *Store) tidy(ctx context.Context, c *cluster.Cluster, path string) ([]string, error) {
	lock, err := localfile.Claim(path + lockEnd)
	if errors.Is(err, localfile.ErrClaimed) {
		return nil, nil // the run still works
	}
	if err != nil {
		return nil, err
	}
	r := &Run{path: path, lock: lock}
	text, err := readBounded(path + recordEnd)
	if errors.Is(err, os.ErrNotExist) { // another command has already removed the record
		defer lock.Close()
		return nil, os.Remove(path + lockEnd)
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	switch {
	case err != nil:
		lock.Close()
		return nil, fmt.Errorf("read %s: %w; remove this file", path+recordEnd, err)
	case time.Since(r.Begun) > keepRecords:
		defer lock.Close()
		return nil, r.forget()
	case r.Server != c.Server():
		lock.Close()
		return nil, nil
	}
	return r.End(ctx, c)
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxRecord {
		return nil, fmt.Errorf("it has %d bytes", info.Size())
	}
	return os.ReadFile(path)
}

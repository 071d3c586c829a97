package trust

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// Record says that you trust a node file with certain claims.
type Record struct {
	File    string    `json:"file"` // an absolute path without links
	Trusted time.Time `json:"trusted"`
	Claims  []Claim   `json:"claims"`
}

// Store holds a file for each record, in folders of which the first gets the new ones.
type Store struct{ folders []string }

// UserStore returns the store of the user, in the subfolder trusted of each folder of localfile.ConfigFolders.
func UserStore() (Store, error) {
	folders, err := localfile.ConfigFolders()
	for i := range folders {
		folders[i] = filepath.Join(folders[i], "trusted")
	}
	return Store{folders}, err
}

// Trust records that a node file may do what it claims now.
func (s Store) Trust(file string, claims []Claim, now time.Time) (Record, error) {
	path, places, err := s.places(file)
	if err != nil {
		return Record{}, err
	}
	record := Record{File: path, Trusted: now.UTC().Truncate(time.Second), Claims: claims}
	text, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(places[0]), 0o700)
	}
	if err == nil {
		err = localfile.Replace(places[0], append(text, '\n'))
	}
	return record, err
}

// Of returns the record of a node file; found reports whether there is one. If another account can change the
// record, the error is a *localfile.ForeignError.
func (s Store) Of(file string) (record Record, found bool, err error) {
	_, places, err := s.places(file)
	if err != nil {
		return Record{}, false, err
	}
	for _, place := range places {
		record, err = load(place)
		if !errors.Is(err, fs.ErrNotExist) {
			return record, err == nil, err
		}
	}
	return Record{}, false, nil
}

// Forget removes the record of a node file, and returns it as Of does.
func (s Store) Forget(file string) (record Record, found bool, err error) {
	record, found, err = s.Of(file)
	if !found {
		return Record{}, false, err
	}
	_, places, err := s.places(file)
	for _, place := range places {
		if removed := os.Remove(place); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return record, err == nil, err
}

// Records returns all records, sorted by the paths of their files.
func (s Store) Records() ([]Record, error) {
	records, known := []Record{}, map[string]bool{}
	for _, folder := range s.folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			if filepath.Ext(entry.Name()) != ".json" || known[entry.Name()] {
				continue
			}
			known[entry.Name()] = true
			record, err := load(filepath.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			records = append(records, record)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.File, b.File) })
	return records, nil
}

// places returns the path of a node file without links, and the paths of its record, the one to write to first. The
// node file need not exist.
func (s Store) places(file string) (path string, places []string, err error) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return "", nil, err
	}
	path, err = filepath.EvalSymlinks(absolute)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = absolute, nil
	}
	for _, folder := range s.folders {
		places = append(places, filepath.Join(folder, fmt.Sprintf("%x.json", sha256.Sum256([]byte(path)))))
	}
	return path, places, err
}

func load(place string) (record Record, err error) {
	if err := localfile.CheckForeign(place); err != nil {
		return Record{}, err
	}
	text, err := os.ReadFile(place)
	if err != nil {
		return Record{}, err
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return Record{}, fmt.Errorf("%s is no record of a trusted node file: %w; remove it", place, err)
	}
	return record, nil
}

// Changes says how claims differ from those that were trusted, one text for each.
func Changes(trusted, now []Claim) (changes []string) {
	before, after := byField(trusted), byField(now)
	for _, claim := range now {
		was, known := before[claim.key()]
		switch {
		case !known:
			changes = append(changes, claim.String()+", which is new")
		case was != claim.Value:
			changes = append(changes, fmt.Sprintf("%s, and was %s", claim, was))
		}
	}
	for _, claim := range trusted {
		if _, is := after[claim.key()]; !is {
			changes = append(changes, fmt.Sprintf("%s of %s is gone, and was %s", claim.Field, claim.Document, claim.Value))
		}
	}
	return changes
}

func (c Claim) key() string { return c.Document + "\n" + c.Field }

func byField(claims []Claim) map[string]string {
	values := map[string]string{}
	for _, claim := range claims {
		values[claim.key()] = claim.Value
	}
	return values
}

package kindcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// recordVersion is the version of the format in which this swdt writes records.
const recordVersion = 1

// record is swdt's knowledge of a cluster that it made, or began to make.
type record struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Begun   time.Time `json:"begun"`
	// Complete reports whether kind has made the whole cluster.
	Complete bool `json:"complete"`
	// Kubeconfig is the file to which swdt added the cluster; empty: kubectl's default.
	Kubeconfig string `json:"kubeconfig"`
	// Earlier is the kubeconfig before kind added the cluster; nil: an older swdt made the cluster.
	Earlier *earlierFile `json:"earlier,omitempty"`
	// MadeNetwork reports whether kind's network must be removed with this cluster, since kind
	// made the network for a cluster of swdt.
	MadeNetwork bool `json:"madeNetwork"`
	// Wanted is the configuration for kind from which the cluster was made.
	Wanted json.RawMessage `json:"wanted"`
	// Mirrors are the registries whose mirrors swdt has written on the Linux nodes.
	Mirrors []string `json:"mirrors,omitempty"`
	// Images are the images that swdt has loaded. The keys are a node's name, a space and the image's
	// name.
	Images map[string]loaded `json:"images,omitempty"`
}

// records is the folder with a record for each cluster.
type records struct{ folder string }

func openRecords(folder string) (records, error) {
	if folder == "" {
		data, err := localfile.DataFolder()
		if err != nil {
			return records{}, err
		}
		folder = filepath.Join(data, "swdt", "clusters")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return records{}, fmt.Errorf("make the folder of clusters: %w", err)
	}
	return records{folder}, nil
}

func (r records) path(name string) string { return filepath.Join(r.folder, name+".json") }

// lock keeps other swdts from changing the cluster until the file is closed.
func (r records) lock(name string) (*os.File, error) {
	file, err := localfile.Claim(filepath.Join(r.folder, name+".lock"))
	if errors.Is(err, localfile.ErrClaimed) {
		return nil, fmt.Errorf("another swdt works on cluster %s: wait until it has ended", name)
	}
	if err != nil {
		return nil, fmt.Errorf("lock cluster %s: %w", name, err)
	}
	return file, nil
}

// get returns the record of a cluster; ok is false if there is none, since swdt did not make the
// cluster.
func (r records) get(name string) (found record, ok bool, err error) {
	text, err := os.ReadFile(r.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return found, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err == nil && (found.Version != recordVersion || found.Name != name) {
		err = fmt.Errorf("it is not a record of cluster %s in version %d of the format", name, recordVersion)
	}
	if err != nil {
		return found, false, fmt.Errorf("read %s: %w; if cluster %s does not exist, remove the file", r.path(name), err, name)
	}
	return found, true, nil
}

func (r records) put(one record) error {
	text, err := json.MarshalIndent(one, "", "  ")
	if err == nil {
		err = localfile.Replace(r.path(one.Name), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record cluster %s: %w", one.Name, err)
	}
	return nil
}

func (r records) remove(name string) error {
	if err := os.Remove(r.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of cluster %s: %w", name, err)
	}
	return nil
}

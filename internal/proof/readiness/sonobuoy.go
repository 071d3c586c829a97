package readiness

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// SonobuoyFolder is the folder in which Sonobuoy's worker looks for the results of a plugin.
	SonobuoyFolder = "/tmp/sonobuoy/results"
	// sonobuoyItems is the file that Sonobuoy reads if the plugin has the result format "manual".
	sonobuoyItems  = "sonobuoy_results.yaml"
	sonobuoyReport = "readiness.json"
	sonobuoyTar    = "results.tar.gz"
	// sonobuoyDone is the file that ends the plugin. It has the path of the results.
	sonobuoyDone = "done"
)

// sonobuoyItem is an entry of Sonobuoy's tree of results.
type sonobuoyItem struct {
	Name    string            `json:"name"`
	Status  string            `json:"status"` // passed, failed, skipped or unknown
	Details map[string]string `json:"details,omitempty"`
	Items   []sonobuoyItem    `json:"items,omitempty"`
}

// WriteSonobuoy writes the report into the folder of a Sonobuoy plugin with the result format "manual",
// and then the file that ends the plugin. A case that was not proved
// never has the status passed.
func (r Report) WriteSonobuoy(folder string) error {
	folder, err := filepath.Abs(folder) // absolute, since the worker has another working folder
	if err != nil {
		return fmt.Errorf("write the results for Sonobuoy: %w", err)
	}
	items, err := yaml.Marshal(r.sonobuoy())
	if err != nil {
		return fmt.Errorf("write the results for Sonobuoy: %w", err)
	}
	document, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results for Sonobuoy: %w", err)
	}
	packed, err := pack(r.Begin, map[string][]byte{sonobuoyItems: items, sonobuoyReport: document})
	if err != nil {
		return fmt.Errorf("pack the results for Sonobuoy: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path := filepath.Join(folder, sonobuoyTar)
	if err := share(path, packed); err != nil {
		return err
	}
	return share(filepath.Join(folder, sonobuoyDone), []byte(path))
}

// share writes a whole file at once, which other users can read: Sonobuoy's worker is another container.
func share(path string, content []byte) error {
	unfinished := path + ".tmp"
	if err := os.WriteFile(unfinished, content, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// sonobuoy returns the report as Sonobuoy's tree: categories with their cases.
func (r Report) sonobuoy() sonobuoyItem {
	root := sonobuoyItem{Name: "swdt-readiness", Status: "passed", Details: map[string]string{"summary": r.Sentence()}}
	if r.failure() != nil {
		root.Status = "failed"
	}
	for _, category := range Categories() {
		group := sonobuoyItem{Name: category, Status: "passed"}
		for _, c := range r.Cases {
			if c.Category != category {
				continue
			}
			item := sonobuoyItem{Name: c.ID, Status: sonobuoyStatus(c.Result), Details: map[string]string{"proves": c.Proves}}
			if c.Message != "" {
				item.Details["message"] = c.Message
			}
			group.Items = append(group.Items, item)
			group.Status = worseStatus(group.Status, item.Status)
		}
		if len(group.Items) > 0 {
			root.Items = append(root.Items, group)
		}
	}
	return root
}

// sonobuoyStatus returns Sonobuoy's word for a result. A case that the run did not try is failed, since
// Sonobuoy counts only failures as a problem.
func sonobuoyStatus(result string) string {
	switch result {
	case Proved:
		return "passed"
	case NotPossible:
		return "skipped"
	}
	return "failed"
}

func worseStatus(a, b string) string {
	for _, status := range []string{"failed", "skipped"} {
		if a == status || b == status {
			return status
		}
	}
	return "passed"
}

// pack returns a compressed archive with these files.
func pack(at time.Time, files map[string][]byte) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range []string{sonobuoyItems, sonobuoyReport} {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: at}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

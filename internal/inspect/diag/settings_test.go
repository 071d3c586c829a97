package diag

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// A bundle comes from others: its tables may have any values.
func TestSettingsOfAnOddBundle(t *testing.T) {
	const lacking = "the manifest alone has it"
	for name, content := range map[string]map[string]string{
		"nulls":       {"services": `[{"name":"kubelet"}]`, "cluster-pods": "[null]", "cluster-node": `{"node":null}`, "machine": "null", "registry": "null"},
		"other types": {"services": `{"a":1}`},
		"no services": {"machine": `{"hostname":"x"}`},
		"lacking":     {"services": lacking, "machine": `{"hostname":"x"}`},
		"half":        {"services": `[]`, "registry": `[{"key":`},
	} {
		record := NodeRecord{Name: "n", Folder: "nodes/n"}
		for table := range content {
			record.Collectors = append(record.Collectors, CollectorRecord{Name: table, Result: Done, Tables: []string{table}})
		}
		manifest, err := json.Marshal(Manifest{Format: Format, Nodes: []NodeRecord{record}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "x.tar.gz")
		out, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		zipped := gzip.NewWriter(out)
		tape := tar.NewWriter(zipped)
		add := func(name string, text []byte) {
			if err := tape.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text))}); err != nil {
				t.Fatal(err)
			}
			tape.Write(text)
		}
		add(manifestName, manifest)
		for table, text := range content {
			if text != lacking {
				add(record.table(table, "json"), []byte(text))
			}
		}
		tape.Close()
		zipped.Close()
		out.Close()
		bundle, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		known, err := kubesettings.Load()
		if err != nil {
			t.Fatal(err)
		}
		r := upgradecheck.NewReader(known)
		err = bundle.Settings(t.Context(), r, true, known)
		if err != nil || len(r.Facts.Nodes) != 1 {
			t.Fatalf("%s: %v, %+v", name, err, r.Facts.Nodes)
		}
		failed := r.Facts.Nodes[0].Result == upgradecheck.NodeFailed
		if want := name == "no services" || name == "other types" || name == "lacking"; failed != want {
			t.Errorf("%s: %+v", name, r.Facts.Nodes)
		}
		unread := slices.ContainsFunc(r.Facts.Unread, func(u upgradecheck.Unread) bool { return u.Place.Object == "registry" })
		if unread != (name == "half") {
			t.Errorf("%s: %+v", name, r.Facts.Unread)
		}
	}
}

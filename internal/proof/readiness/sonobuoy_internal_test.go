package readiness

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestSonobuoyGetsEveryResult(t *testing.T) {
	r := Report{Cases: []CaseResult{
		{ID: "a", Category: Storage, Result: Proved, Proves: "It stores"},
		{ID: "b", Category: Network, Result: NotPossible, Message: "no internet"},
		{ID: "c", Category: Network, Result: Failed, Message: "no answer"},
		{ID: "d", Category: Policy, Result: NotRun, Message: "no e2e.test"},
		{ID: "e", Category: Devices, Result: NotPossible, Message: "no GPU"},
	}}
	r.ended(0)
	folder := filepath.Join(t.TempDir(), "results")
	if err := r.WriteSonobuoy(folder); err != nil {
		t.Fatal(err)
	}
	done, err := os.ReadFile(filepath.Join(folder, "done"))
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, string(done))
	var root sonobuoyItem
	if err := yaml.UnmarshalStrict(files["sonobuoy_results.yaml"], &root); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{root.Name: root.Status}
	for _, group := range root.Items {
		got[group.Name] = group.Status
		for _, item := range group.Items {
			got[item.Name] = item.Status + " " + item.Details["message"]
		}
	}
	want := map[string]string{"swdt-readiness": "failed", "storage": "passed", "network": "failed", "policy": "failed",
		"devices": "skipped", "a": "passed ", "b": "skipped no internet", "c": "failed no answer", "d": "failed no e2e.test",
		"e": "skipped no GPU"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var report Report
	if err := json.Unmarshal(files["readiness.json"], &report); err != nil || len(report.Cases) != 5 {
		t.Errorf("%+v, %v", report, err)
	}
}

func unpack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

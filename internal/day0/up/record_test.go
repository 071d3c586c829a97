package up

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, folder string) *notes {
	t.Helper()
	n, err := openNotes(folder, "dev")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.close() })
	return n
}

func TestRecordSurvives(t *testing.T) {
	folder := t.TempDir()
	n := open(t, folder)
	err := n.change(func(r *record) {
		r.Cluster, r.Machines = true, with(with(r.Machines, "a"), "b")
		r.Machines = with(r.Machines, "a")
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openNotes(folder, "dev"); err == nil {
		t.Error("two commands have the record at the same time")
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	n = open(t, folder)
	want := record{Version: recordVersion, Name: "dev", Cluster: true, Machines: []string{"a", "b"}, Nodes: []string{}}
	if diff := cmp.Diff(want, n.now()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err = n.change(func(r *record) {
		r.Cluster, r.Machines = false, without(without(r.Machines, "a"), "b")
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "dev.json")); !os.IsNotExist(err) {
		t.Errorf("an empty record stays: %v", err)
	}
}

func TestDamagedRecordIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "not JSON": "{", "another version": `{"version": 2, "name": "dev"}`,
		"another cluster": `{"version": 1, "name": "x"}`,
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "dev.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := openNotes(folder, "dev"); err == nil {
			t.Errorf("%s: read as %+v", name, n.now())
		}
	}
}

// The question of down names every thing that it removes.
func TestThingsOfARecord(t *testing.T) {
	r := record{Name: "dev", Cluster: true, Machines: []string{"vm-1"}, Nodes: []string{"vm-1", "win-1"}}
	want := []string{"the join of win-1", "VM vm-1 with its disks", "cluster dev with everything in it"}
	if diff := cmp.Diff(want, r.things()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

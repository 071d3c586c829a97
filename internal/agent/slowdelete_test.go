package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// Windows Server 2019 keeps the name of a removed file while another program reads it, also if the program shares
// deletion. An indexer reads for a second.
func TestRemovedFilesKeepTheirNamesOnServer2019(t *testing.T) {
	const folder, path = `C:\config`, `C:\config\a`
	for name, change := range map[string]func(*testing.T, *client) error{
		"a new file at the name": func(t *testing.T, c *client) error {
			new := []byte("new")
			_, err := c.write(t.Context(), &agentv1.WriteHeader{Path: path, Fresh: true, Size: 3, Sha256: sha(new)}, new, 3)
			return err
		},
		"the folder": func(t *testing.T, c *client) error {
			_, err := c.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: folder, Recursive: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, simulated.Options{Preset: simulated.Minimal, SlowDelete: true})
				put(t, m, path, []byte("old"))
				c := connect(t, m.Process("agent"))
				file, err := m.Process("SearchIndexer.exe").Files.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Second, func() { _ = file.Close() })
				if err := change(t, c); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

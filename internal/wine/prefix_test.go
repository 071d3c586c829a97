package wine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPrepareTry(t *testing.T) {
	p, err := Prepare(t.Context(), filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	out, err := p.Command(t.Context(), "cmd", "/c", "ver & set & dir c:\\").CombinedOutput()
	t.Logf("%s %v", out, err)
	os.Stdout.WriteString(p.Folder())
}

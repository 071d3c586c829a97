package cli_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// When the time is over, some of several nodes may not even have been tried.
func TestTimeoutReportsNodesThatWereNotTried(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("SWDT_TEST_PASSWORD", "x")
	var nodes strings.Builder
	for _, name := range []string{"one", "two"} {
		fmt.Fprintf(&nodes, "---\napiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: %s}\nspec:\n"+
			"  credentials: {username: u, hostname: %q, passwordFrom: {env: SWDT_TEST_PASSWORD}}\n",
			name, silent.Addr())
	}
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(file, []byte(nodes.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, story bytes.Buffer
	code := cli.Run(t.Context(), ui.Streams{Out: &out, Err: &story}, []string{
		"cri", "proxy", "-c", file, "--parallel", "1", "--timeout", "300ms", "--listen", "tcp://127.0.0.1:0",
		"-o", "json",
	}, cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	if code == 0 || strings.Count(out.String(), `"error"`) != 2 {
		t.Errorf("exit code %d\n%s\n%s", code, &out, &story)
	}
}

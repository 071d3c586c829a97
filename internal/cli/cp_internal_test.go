package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

func TestParseCopyRefuses(t *testing.T) {
	workdir.Change(t, t.TempDir())
	for _, folder := range []string{"p/logs", "q/logs"} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const twice, nodes = "would be one file in", "copy to this machine first"
	for _, test := range []struct {
		args string
		want string
	}{
		{`p/logs q/logs win-1:C:\d`, twice}, {`p/logs q/logs/ win-1:C:\d`, twice}, {`p/logs/ q/logs/ win-1:C:\d`, twice},
		{`win-1:C:\x\ win-1:C:\y\x here`, twice},
		{`win-1:C:/x win-2:C:/y`, nodes}, {`win-1:C:/x win-1:C:/y`, nodes}, {`here there`, "either SRC or DST"},
	} {
		args := strings.Fields(test.args)
		_, _, err := parseCopy(args[:len(args)-1], args[len(args)-1])
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.args, err, test.want)
		}
	}
}

package containerdconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
)

func debug() map[string]any {
	return map[string]any{
		"debug":   map[string]any{"level": "debug"},
		"plugins": map[string]any{"otlp": map[string]any{"endpoint": "http://x"}},
	}
}

// Only the merged values differ, in every generation's configuration.
func TestOverlayChangesNothingElse(t *testing.T) {
	for _, g := range generations() {
		before := defaults(t, g.containerd)
		after, err := containerdconfig.Overlay(before, debug(), "# on top\n")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(after), "# on top\n") {
			t.Errorf("%s: no header", g.containerd)
		}
		want := []string{`debug.level: "" → "debug"`, `plugins.otlp: nothing → a table`}
		if diff := cmp.Diff(want, containerdconfig.Differences(before, after)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", g.containerd, diff)
		}
		if got := containerdconfig.Text(after, "debug", "level"); got != "debug" {
			t.Errorf("%s: level %q", g.containerd, got)
		}
		again, err := containerdconfig.Overlay(after, debug(), "# on top\n")
		if err != nil || string(again) != string(after) {
			t.Errorf("%s: laid over again it differs (%v)", g.containerd, err)
		}
	}
}

func TestOverlayOfWhatIsNotThere(t *testing.T) {
	after, err := containerdconfig.Overlay(nil, debug(), "")
	switch {
	case err != nil:
		t.Error(err)
	case containerdconfig.Text(after, "plugins", "otlp", "endpoint") != "http://x":
		t.Errorf(`containerdconfig.Text(after, "plugins", "otlp", "endpoint") is %q, want %q`,
			containerdconfig.Text(after, "plugins", "otlp", "endpoint"), "http://x")
	}
}

// A file saved by Windows' own programs begins with a mark.
func TestAConfigurationWithAMark(t *testing.T) {
	const plain = "version = 2\n[debug]\nlevel = 'warn'\n"
	marked := []byte("\ufeff" + plain)
	after, err := containerdconfig.Overlay(marked, debug(), "# on top\n")
	switch {
	case err != nil:
		t.Error(err)
	case !strings.HasPrefix(string(after), "# on top\n"):
		t.Errorf("after does not begin with %q:\n%s", "# on top\n", string(after))
	case containerdconfig.Text(after, "debug", "level") != "debug":
		t.Errorf(`containerdconfig.Text(after, "debug", "level") is %q, want %q`,
			containerdconfig.Text(after, "debug", "level"), "debug")
	}
	if got := containerdconfig.Text(marked, "debug", "level"); got != "warn" {
		t.Errorf("level %q", got)
	}
	if found := containerdconfig.Differences(marked, []byte(plain)); len(found) > 0 ||
		!containerdconfig.Equal(marked, []byte(plain)) {
		t.Errorf("they differ: %q", found)
	}
}

func TestOverlayOfWhatCannotBe(t *testing.T) {
	for _, config := range []string{"debug = 1", "a = = 1", "[debug.level]\nx = 1"} {
		if after, err := containerdconfig.Overlay([]byte(config), debug(), ""); err == nil {
			t.Errorf("%s: became\n%s", config, after)
		}
	}
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"a = 1\n[t]\nb = 'x'", "a = 2\n[t]\nb = 'x'", "a: 1 → 2"},
		{"[t]\nb = 'x'", "[t]\nc = true", `t.b: "x" → nothing, t.c: nothing → true`},
		{"a = 1 # a comment", "a = 1", ""},
		{"a = ", "a = 1", "one of the two configurations is not TOML"},
		{"a = [1]", "a = [2]", "a: [1] → [2]"},
	} {
		if got := strings.Join(containerdconfig.Differences([]byte(c.a), []byte(c.b)), ", "); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

package containerdconfig_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
)

var update = flag.Bool("update", false, "write the golden files anew")

// wishes sets every field.
func wishes() containerdconfig.Wishes {
	return containerdconfig.Wishes{
		PauseImage: "registry.example/pause:9",
		CNIBinDir:  `c:\opt\cni\bin`,
		CNIConfDir: `c:\etc\cni\net.d`,
		LogLevel:   "debug",
		Root:       `D:\containerd\root`,
		State:      `D:\containerd\state`,
		Pipe:       `\\.\pipe\another`,
		User: []byte(`
[plugins."io.containerd.gc.v1.scheduler"] # deep, beside what is there
mutation_threshold = 7
[proxy_plugins.lab]
type = "snapshot"
address = '\\.\pipe\lab'
`),
	}
}

// generation is a containerd and the keys at which its configuration has swdt's
// values.
type generation struct {
	containerd string
	version    int
	changes    map[string]any // by path, / between names
}

func generations() []generation {
	common := map[string]any{
		"debug/level": "debug", "root": `D:\containerd\root`, "state": `D:\containerd\state`,
		"plugins/io.containerd.gc.v1.scheduler/mutation_threshold": int64(7),
		"proxy_plugins/lab/type":                                   "snapshot",
		"proxy_plugins/lab/address":                                `\\.\pipe\lab`,
	}
	with := func(more map[string]any) map[string]any {
		for path, value := range common {
			more[path] = value
		}
		return more
	}
	version2 := func() map[string]any {
		return with(map[string]any{
			"plugins/io.containerd.grpc.v1.cri/sandbox_image": "registry.example/pause:9",
			"plugins/io.containerd.grpc.v1.cri/cni/bin_dir":   `c:\opt\cni\bin`,
			"plugins/io.containerd.grpc.v1.cri/cni/conf_dir":  `c:\etc\cni\net.d`,
			"grpc/address": `\\.\pipe\another`,
		})
	}
	return []generation{
		{"1.6.27", 2, version2()},
		{"1.7.12", 2, version2()},
		{"2.0.0", 3, with(map[string]any{
			"plugins/io.containerd.cri.v1.images/pinned_images/sandbox": "registry.example/pause:9",
			"plugins/io.containerd.cri.v1.runtime/cni/bin_dir":          `c:\opt\cni\bin`,
			"plugins/io.containerd.cri.v1.runtime/cni/conf_dir":         `c:\etc\cni\net.d`,
			"grpc/address": `\\.\pipe\another`,
		})},
		{"2.2.0", 3, with(map[string]any{
			"plugins/io.containerd.cri.v1.images/pinned_images/sandbox": "registry.example/pause:9",
			"plugins/io.containerd.cri.v1.runtime/cni/bin_dirs":         []any{`c:\opt\cni\bin`},
			"plugins/io.containerd.cri.v1.runtime/cni/conf_dir":         `c:\etc\cni\net.d`,
			"grpc/address": `\\.\pipe\another`,
		})},
		{"2.4.2", 4, with(map[string]any{
			"plugins/io.containerd.cri.v1.images/pinned_images/sandbox": "registry.example/pause:9",
			"plugins/io.containerd.cri.v1.runtime/cni/bin_dirs":         []any{`c:\opt\cni\bin`},
			"plugins/io.containerd.cri.v1.runtime/cni/conf_dir":         `c:\etc\cni\net.d`,
			"plugins/io.containerd.server.v1.grpc/address":              `\\.\pipe\another`,
			"plugins/io.containerd.server.v1.ttrpc/address":             `\\.\pipe\another.ttrpc`,
		})},
	}
}

func defaults(t *testing.T, containerd string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "default-"+containerd+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// flat returns a configuration as paths and values.
func flat(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var config map[string]any
	if err := toml.Unmarshal(text, &config); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out := map[string]any{}
	flatten(out, "", config)
	return out
}

func flatten(out map[string]any, path string, value any) {
	table, ok := value.(map[string]any)
	if !ok {
		out[path] = value
		return
	}
	for key, value := range table {
		flatten(out, strings.TrimPrefix(path+"/"+key, "/"), value)
	}
}

// The generated configuration is kept, except for exactly the values that are
// set.
func TestMergeChangesWhatIsWishedAndNothingElse(t *testing.T) {
	for _, g := range generations() {
		t.Run(g.containerd, func(t *testing.T) {
			before := defaults(t, g.containerd)
			got, info, err := containerdconfig.Merge(before, wishes())
			if err != nil {
				t.Fatal(err)
			}
			if info.ConfigVersion != g.version || len(info.Warnings) > 0 {
				t.Errorf("info %+v, want version %d and no warnings", info, g.version)
			}
			want := flat(t, before)
			for path, value := range g.changes {
				want[path] = value
			}
			if diff := cmp.Diff(want, flat(t, got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			golden(t, g.containerd, got)
		})
	}
}

func golden(t *testing.T, containerd string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "merged-"+containerd+".toml")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s, -want +got (go test -update):\n%s", path, diff)
	}
}

func TestNoWishesIsContainerdsOwn(t *testing.T) {
	for _, g := range generations() {
		before := defaults(t, g.containerd)
		first, _, err := containerdconfig.Merge(before, containerdconfig.Wishes{})
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := containerdconfig.Merge(before, containerdconfig.Wishes{})
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: written anew it differs (%v)", g.containerd, err)
		}
		if !containerdconfig.Equal(before, first) {
			t.Errorf("%s: says something else:\n%s", g.containerd, cmp.Diff(flat(t, before), flat(t, first)))
		}
		// The result can be parsed and merged again.
		again, _, err := containerdconfig.Merge(first, containerdconfig.Wishes{})
		if err != nil || !bytes.Equal(first, again) {
			t.Errorf("%s: merged again it differs (%v)", g.containerd, err)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a = 1\n[t]\nb = 'x'\n", "# comment\nt.b = \"x\"\n\na=1", true},
		{"a = 1", "a = 2", false},
		{"a = 1", "a = 1.0", false},
		{"a = 1", "a = '1'", false},
		{"a = [1, 2]", "a = [2, 1]", false},
		{"a = 1", "", false},
		{"", "", true},
		{"a =", "a =", false},
	} {
		if got := containerdconfig.Equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("Equal(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestUserTOMLWinsAndKeepsTypes(t *testing.T) {
	got, _, err := containerdconfig.Merge(defaults(t, "1.7.12"), containerdconfig.Wishes{
		CNIBinDir: `c:\ours`,
		User: []byte(`
required_plugins = ["io.containerd.grpc.v1.cri"]
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = 'c:\theirs'
[plugins."io.containerd.gc.v1.scheduler"]
pause_threshold = 1.0
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.mine]
runtime_type = "io.containerd.runhcs.v1"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.mine.options]
Debug = true
DebugType = 2
[[plugins."example".list]]
when = 2026-11-20T10:00:00Z
`),
	})
	if err != nil {
		t.Fatal(err)
	}
	after := flat(t, got)
	const runtimes = "plugins/io.containerd.grpc.v1.cri/containerd/runtimes"
	for path, want := range map[string]any{
		"plugins/io.containerd.grpc.v1.cri/cni/bin_dir":         `c:\theirs`,
		"plugins/io.containerd.gc.v1.scheduler/pause_threshold": 1.0,
		runtimes + "/mine/options/Debug":                        true,
		runtimes + "/mine/options/DebugType":                    int64(2),
		runtimes + "/runhcs-wcow-process/runtime_type":          "io.containerd.runhcs.v1",
		"required_plugins":                                      []any{"io.containerd.grpc.v1.cri"},
	} {
		if !cmp.Equal(after[path], want) {
			t.Errorf("%s = %#v, want %#v", path, after[path], want)
		}
	}
	if !strings.Contains(string(got), "2026-11-20T10:00:00Z") {
		t.Error("the time is lost")
	}
}

func TestUserTOMLThatCannotBe(t *testing.T) {
	_, _, err := containerdconfig.Merge(defaults(t, "1.7.12"),
		containerdconfig.Wishes{User: []byte("root = 'a'\n[debug]\n  level = debug\n")})
	var user *containerdconfig.UserError
	switch {
	case !errors.As(err, &user):
		t.Errorf("bad TOML: the error is %v, a %T, want a %T", err, err, user)
	case user.Line != 3:
		t.Errorf("bad TOML: user.Line is %v, want 3", user.Line)
	case !strings.Contains(err.Error(), "line 3"):
		t.Errorf("bad TOML: err.Error() lacks %q:\n%s", "line 3", err.Error())
	}
	for toml, want := range map[string]string{
		"debug = 'debug'":          "sets debug to a value, where containerd has a table",
		"[root]\nx = 1":            "makes a table of root",
		"root = 'a'\nroot = 'b'\n": "line 2",
	} {
		_, _, err := containerdconfig.Merge(defaults(t, "1.7.12"), containerdconfig.Wishes{User: []byte(toml)})
		switch {
		case err == nil:
			t.Errorf("%q: no error, want one", toml)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q: err.Error() lacks %q:\n%s", toml, want, err.Error())
		case !strings.Contains(err.Error(), "spec.kubernetes.containerd.config"):
			t.Errorf("%q: err.Error() lacks %q:\n%s", toml, "spec.kubernetes.containerd.config", err.Error())
		}
	}
}

func TestWarningsAboutAnotherConfigVersion(t *testing.T) {
	for _, c := range []struct{ containerd, toml, want string }{
		{"2.4.2", "version = 2", "has version = 2, but this containerd's configuration has version 4"},
		{"2.4.2", `[plugins."io.containerd.grpc.v1.cri".cni]`, "see plugins.'io.containerd.cri.v1.runtime'.cni"},
		{"2.4.2", `[plugins."io.containerd.grpc.v1.cri".registry]`,
			"see plugins.'io.containerd.cri.v1.images'.registry"},
		{"2.4.2", `[plugins."io.containerd.grpc.v1.cri"]` + "\nsandbox_image = 'x'",
			"see plugins.'io.containerd.cri.v1.images'.pinned_images.sandbox"},
		{"2.4.2", "[grpc]\ntcp_address = '127.0.0.1:1'", "see plugins.'io.containerd.server.v1.grpc'"},
		{"2.0.0", `[plugins."io.containerd.server.v1.grpc"]`, "see grpc"},
		{"1.7.12", `[plugins."io.containerd.cri.v1.runtime".cni]`, "see plugins.'io.containerd.grpc.v1.cri'"},
		{"1.7.12", `[plugins."io.containerd.cri.v1.images".pinned_images]`, "see plugins.'io.containerd.grpc.v1.cri'"},
		// Keys of this version, or of no particular one.
		{"2.4.2", "version = 4", ""},
		{"2.4.2", `[plugins."io.containerd.grpc.v1.cri"]` + "\nstream_server_port = '1'", ""},
		{"2.4.2", `[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.mine]`, ""},
		{"2.0.0", "[grpc]\ntcp_address = '127.0.0.1:1'", ""},
		{"1.7.12", `[plugins."io.containerd.grpc.v1.cri".registry.mirrors.x]`, ""},
		{"1.7.12", `[plugins."com.example.v1.mine"]`, ""},
	} {
		got, info, err := containerdconfig.Merge(defaults(t, c.containerd),
			containerdconfig.Wishes{User: []byte(c.toml)})
		if err != nil {
			t.Errorf("%s: %q: %v", c.containerd, c.toml, err)
			continue
		}
		if text := strings.Join(info.Warnings, "\n"); (c.want == "") != (text == "") ||
			!strings.Contains(text, c.want) {
			t.Errorf("%s: %q: warnings %q, want %q", c.containerd, c.toml, text, c.want)
		}
		if flat(t, got)["version"] != int64(info.ConfigVersion) {
			t.Errorf("%s: %q changed the version", c.containerd, c.toml)
		}
	}
}

func TestDefaultsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "has no config version",
		"version = 1":                    "has version 1, but swdt supports 2 to 4",
		"version = 5":                    "a newer swdt",
		"containerd: unknown command":    "parse the output of containerd.exe config default",
		"version = 2\nroot = 'C:\\data'": "no place for pauseImage",
	} {
		_, _, err := containerdconfig.Merge([]byte(text), containerdconfig.Wishes{PauseImage: "pause"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

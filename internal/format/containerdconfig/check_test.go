package containerdconfig_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
)

// Each text is a part of a configuration as people have written it; want has the line of each
// mistake, "!" for a mistake that containerd ignores, and whether the remedy is about backslashes.
func TestCheck(t *testing.T) {
	const cri, images = `plugins."io.containerd.grpc.v1.cri"`, `plugins."io.containerd.cri.v1.images"`
	mirror := func(plugin string) string {
		return "[" + plugin + ".registry.mirrors.\"docker.io\"]\nendpoint = [\"https://registry-1.docker.io\"]\n"
	}
	path := func(plugin, folder string) string {
		return "[" + plugin + ".registry]\nconfig_path = '" + folder + "'\n"
	}
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"nothing":         {"", nil},
		"a root":          {`root = 'D:\containerd\root'`, nil},
		"doubled":         {`root = "D:\\containerd\\root"`, nil},
		"a byte mark":     {"\ufeffroot = 'D:\\root'\n", nil},
		"a quote escaped": {`[timeouts]` + "\n" + `"x" = "say \"3s\""`, nil},
		// Siemens-Healthineers/K2s#2376
		"an escape that TOML does not have": {"version = 2\nroot = \"C:\\Somaris\\bin\\k2s\"\n", []string{"2 backslash"}},
		// yvgude/lean-ctx#147: \U wants eight digits.
		"a path of a user": {`temp = "C:\Users\vinicios"`, []string{"1 backslash"}},
		// manufosela/karajan-code#1426: within a list.
		"in a list": {"imports = [\n'C:\\a.toml',\n\"C:\\Users\\b.toml\"]", []string{"3 backslash"}},
		// TOML accepts these: a tab, a line break, a form feed, a carriage return, a backspace.
		"a tab":            {`root = "C:\temp"`, []string{"1 backslash"}},
		"a line break":     {"[debug]\naddress = 'x'\n\n[cgroup]\npath = \"D:\\new\\data\"", []string{"5 backslash"}},
		"after a doubled":  {`state = "C:\\containerd\root"`, []string{"1 backslash"}},
		"a path in a path": {"[" + cri + ".cni]\nbin_dirs = [\"C:\\\\cni\\bin\"]", []string{"2 backslash"}},
		"a forward slash":  {`root = "C:/containerd/root"`, nil},
		// containerd/containerd#4381, #11940: text of another encoding.
		"UTF-16":    {"\xff\xfev\x00e\x00r\x00", []string{"1"}},
		"a brace":   {"[" + cri + "\nsandbox_image = 'x'", []string{"1"}},
		"set twice": {"root = 'a'\nroot = 'b'", []string{"2"}},
		"YAML":      {"root: C:\\x", []string{"1"}},
		"no quotes": {"[debug]\nlevel = debug", []string{"2"}},
		"a text":    {"version = 2\noom_score = \"0\"", []string{"2"}},
		"a list":    {"disabled_plugins = 'cri'", []string{"1"}},
		"a bare mirror": {"[" + cri + ".registry.mirrors.\"docker.io\"]\nendpoint = 'https://m'",
			[]string{"2"}},
		"conf_dir as a list": {"[plugins.'io.containerd.cri.v1.runtime'.cni]\nconf_dir = ['C:\\x']", []string{"2"}},
		"an unknown key":     {"rooot = 'D:\\x'\n[debug]\nlevel = 'debug'\nlvl = 3", []string{"1 !", "4 !"}},
		"unknown and wrong":  {"rooot = 1\nroot = 1", []string{"2"}},
		"another plugin":     {"[plugins.'io.containerd.gc.v1.scheduler']\nx = 1", nil},
		"the same in CRI":    {"[" + cri + "]\nnew_in_9 = 1", nil},
		// containerd/containerd#5306, #7844, dragonflyoss/dragonfly#3372
		"mirrors and config_path":         {path(cri, `C:\certs.d`) + mirror(cri), []string{"3"}},
		"mirrors and config_path since 2": {"version = 3\n" + path(images, `C:\certs.d`) + mirror(images), []string{"4"}},
		"mirrors first":                   {mirror(images) + path(images, `C:\certs.d`), []string{"1"}},
		"mirrors alone":                   {mirror(cri), nil},
		"config_path alone":               {path(images, `C:\certs.d`), nil},
		"an empty config_path":            {path(cri, "") + mirror(cri), nil},
		"in one line": {"[plugins]\n'io.containerd.grpc.v1.cri' = {registry = {config_path = 'x', mirrors = {'a' = {endpoint = ['b']}}}}",
			[]string{"2"}},
		"tls and config_path": {path(cri, "x") + "[" + cri + ".registry.configs.'a.example'.tls]\ninsecure_skip_verify = true",
			[]string{"3"}},
		"auth and config_path": {path(cri, "x") + "[" + cri + ".registry.configs.'a.example'.auth]\nusername = 'u'", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range containerdconfig.Check([]byte(row.text)) {
				line := fmt.Sprint(m.Line)
				if m.Ignored {
					line += " !"
				}
				if m.Backslash {
					line += " backslash"
				}
				got = append(got, line)
				if m.What == "" || m.Remedy == "" || m.Column == 0 {
					t.Errorf("%+v lacks something", m)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("the mistakes differ (-want +got):\n%s\n%+v", diff, containerdconfig.Check([]byte(row.text)))
			}
		})
	}
}

// The configurations that containerd itself generates have no mistake, in any version.
func TestGeneratedConfigurationsHaveNoMistake(t *testing.T) {
	for _, version := range []string{"1.6.27", "1.7.12", "2.0.0", "2.2.0", "2.4.2"} {
		text, err := os.ReadFile("testdata/default-" + version + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		if got := containerdconfig.Check(text); len(got) > 0 {
			t.Errorf("%s: %+v", version, got)
		}
	}
}

// The generated configuration of a containerd may set the config_path beside the node file's
// mirrors (containerd/containerd#12612, killer-sh/cks-course-environment#93).
func TestMergeRefusesMirrorsBesideConfigPath(t *testing.T) {
	for plugin, version := range map[string]int{"io.containerd.grpc.v1.cri": 2, "io.containerd.cri.v1.images": 3} {
		defaults := fmt.Sprintf("version = %d\n[plugins.'%s'.registry]\nconfig_path = 'C:\\certs.d'\n", version, plugin)
		user := fmt.Sprintf("[plugins.'%s'.registry.mirrors.'docker.io']\nendpoint = ['https://m.example']\n", plugin)
		if _, _, err := containerdconfig.Merge([]byte(defaults), containerdconfig.Wishes{User: []byte(user)}); err == nil {
			t.Errorf("version %d: no error", version)
		}
		if _, _, err := containerdconfig.Merge([]byte(defaults), containerdconfig.Wishes{}); err != nil {
			t.Errorf("version %d without mirrors: %v", version, err)
		}
	}
}

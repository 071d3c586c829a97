package containerdconfig_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
)

// FuzzOverlay merges arbitrary tables into an arbitrary configuration: the
// result has the new values, all others are unchanged, and a second merge
// changes nothing.
func FuzzOverlay(f *testing.F) {
	for _, over := range []string{"[debug]\nlevel = 'debug'\n", "a.b.c = 1\n", "[[x]]\ny = 1979-05-27\n",
		"'a.b' = [1, {c = inf}]\n"} {
		f.Add([]byte("version = 2\n[debug]\n  level = ''\n[plugins.'io.containerd.grpc.v1.cri']\n  x = 1\n"),
			[]byte(over))
		f.Add([]byte("\ufeffa = {b = {}}\n"), []byte(over))
	}
	f.Fuzz(func(t *testing.T, config, text []byte) {
		var over, before, after map[string]any
		if toml.Unmarshal(text, &over) != nil {
			return
		}
		result, err := containerdconfig.Overlay(config, over, "")
		if err != nil {
			return
		}
		if err := toml.Unmarshal(result, &after); err != nil {
			t.Fatalf("the result is no TOML: %v\n%s", err, result)
		}
		if err := toml.Unmarshal(bytes.TrimPrefix(config, []byte("\ufeff")), &before); err != nil {
			t.Fatalf("laid over what is no TOML: %v", err)
		}
		holds(t, before, over, after)
		again, err := containerdconfig.Overlay(result, over, "")
		if err != nil || !containerdconfig.Equal(result, again) && !bytes.Equal(result, again) {
			t.Fatalf("again: %v\n%s\nwas\n%s", err, again, result)
		}
	})
}

// holds checks a merged table: it has over's values, and before's values for
// other keys.
func holds(t *testing.T, before, over, after map[string]any) {
	t.Helper()
	for key, value := range after {
		table, isTable := value.(map[string]any)
		wanted, laidOver := over[key]
		if !laidOver {
			wanted = before[key]
		}
		under, _ := before[key].(map[string]any)
		above, _ := over[key].(map[string]any)
		if isTable {
			holds(t, under, above, table)
		} else if !same(wanted, value) {
			t.Fatalf("%q is %#v, want %#v", key, value, wanted)
		}
	}
	for _, all := range []map[string]any{before, over} {
		for key := range all {
			if _, kept := after[key]; !kept {
				t.Fatalf("%q is lost", key)
			}
		}
	}
}

// same compares values as TOML: encoded and parsed, since containerd sees only
// that.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	left, err := toml.Marshal(map[string]any{"v": a})
	if err != nil {
		return false
	}
	right, err := toml.Marshal(map[string]any{"v": b})
	return err == nil && bytes.Equal(left, right)
}

// FuzzMerge merges arbitrary TOML of a node file into the output of a
// containerd: it returns an error or a valid configuration, and never panics.
func FuzzMerge(f *testing.F) {
	for _, user := range []string{"version = 3\n",
		"[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = 'x'\n",
		"[metrics]\naddress = 1\n", "a = '''\n"} {
		f.Add([]byte(user), true)
		f.Add([]byte(user), false)
	}
	f.Fuzz(func(t *testing.T, user []byte, newer bool) {
		containerd := "1.7.12"
		if newer {
			containerd = "2.4.2"
		}
		result, _, err := containerdconfig.Merge(defaults(t, containerd), containerdconfig.Wishes{User: user})
		if err != nil {
			return
		}
		var config map[string]any
		if err := toml.Unmarshal(result, &config); err != nil {
			t.Fatalf("the result is no TOML: %v\n%s", err, result)
		}
	})
}

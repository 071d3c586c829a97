package config

import (
	"path/filepath"
	"testing"
)

func TestResolve(t *testing.T) {
	home, out := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("SWDT_OUT", out)
	t.Setenv("SWDT_HOST", "builds")
	in := func(parts ...string) string { return filepath.Join(parts...) }
	tests := []struct{ file, path, want string }{
		{"nodes/a.yaml", "k.exe", in("nodes", "k.exe")},
		{"nodes/a.yaml", "../k.exe", "k.exe"},
		{"a.yaml", "k.exe", "k.exe"},
		{Stdin, "k.exe", "k.exe"},
		{"nodes/a.yaml", "", ""},
		{"nodes/a.yaml", out, out},
		{"nodes/a.yaml", "~/k.exe", in(home, "k.exe")},
		{"nodes/a.yaml", "~", home},
		{"nodes/a.yaml", "~other/k.exe", in("nodes", "~other", "k.exe")},
		{"nodes/a.yaml", "$SWDT_OUT/k.exe", out + "/k.exe"},
		{"nodes/a.yaml", "${SWDT_OUT}/k.exe", out + "/k.exe"},
		{"nodes/a.yaml", "http://$SWDT_HOST/k.exe", "http://builds/k.exe"},
		{"nodes/a.yaml", "file:///$SWDT_HOST", "file:///builds"},
		{"nodes/a.yaml", "$SWDT_UNSET_/k.exe", in("nodes", "$SWDT_UNSET_", "k.exe")},
		{"nodes/a.yaml", "a$/k.exe", in("nodes", "a$", "k.exe")},
	}
	for _, test := range tests {
		if got := (Document{File: test.file}).Resolve(test.path); got != test.want {
			t.Errorf("%s: Resolve(%q) = %q, want %q", test.file, test.path, got, test.want)
		}
	}
}

//go:build linux

package winsetup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/testing/winsetup"
)

// sfdisk reads the partition table, and finds no fault in it.
func TestTableIsValid(t *testing.T) {
	const size, mebibyte = 1 << 30, 1 << 20
	file := filepath.Join(t.TempDir(), "disk")
	disk, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if err := disk.Truncate(size); err != nil {
		t.Fatal(err)
	}
	err = winsetup.WriteTable(disk, size, []winsetup.Partition{
		{Kind: "EFI", Offset: mebibyte, Size: 100 * mebibyte},
		{Kind: "MSR", Offset: 101 * mebibyte, Size: 16 * mebibyte},
		{Kind: "Primary", Windows: true, Offset: 117 * mebibyte, Size: 906 * mebibyte},
	}, "state")
	if err != nil {
		t.Fatal(err)
	}
	if out := sfdisk(t, "--verify", file); !strings.Contains(out, "No errors detected.") {
		t.Error(out)
	}
	var got []string
	for line := range strings.Lines(sfdisk(t, "--dump", file)) {
		if _, partition, ok := strings.Cut(line, " : "); ok {
			got = append(got, strings.Join(strings.Fields(partition), " "))
		}
	}
	want := []string{
		`start= 2048, size= 204800, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, ` +
			`uuid=53574454-0000-0000-0000-000000000001, name="EFI system partition"`,
		`start= 206848, size= 32768, type=E3C9E316-0B5C-4DB8-817D-F92DF00215AE, ` +
			`uuid=53574454-0000-0000-0000-000000000002, name="Microsoft reserved partition"`,
		`start= 239616, size= 1855488, type=EBD0A0A2-B9E5-4433-87C0-68B6B72699C7, ` +
			`uuid=53574454-0000-0000-0000-000000000003, name="state"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func sfdisk(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("sfdisk")
	if err != nil {
		program = "/usr/sbin/sfdisk"
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("sfdisk %s: %v; run scripts/install-test-deps.sh\n%s", args, err, out)
	}
	return string(out)
}

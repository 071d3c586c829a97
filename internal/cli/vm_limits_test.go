package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/install"
)

func TestLimitsOfAnInstallation(t *testing.T) {
	var o golden.Options
	if err := setLimits(&o, []string{"copy=2h", "set-up=90m", "stall=20m"}); err != nil {
		t.Fatal(err)
	}
	want := golden.Options{
		Limits: map[install.Stage]time.Duration{install.Copy: 2 * time.Hour, install.SetUp: 90 * time.Minute},
		Stall:  20 * time.Minute,
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for pair, want := range map[string]string{
		"cop=2h": "boot, copy, set-up, script, end or stall", "copy": "copy=90m", "copy=2": "copy=90m",
		"copy=-1s": "copy=90m",
	} {
		if err := setLimits(&o, []string{pair}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--limit %s: %v, want %q", pair, err, want)
		}
	}
}

package switches_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/join/switches"
)

// AgentBaker's windows_settings.json at 06836ee has 74 entries of WindowsRegistryKeys for Server 2022, 2025 and all Windows.
func TestTheTableHasAllSettingsOfAKS(t *testing.T) {
	builds := map[int]int{}
	for _, s := range switches.Table() {
		if s.Installer == "AKS" {
			builds[s.Windows]++
		}
	}
	for build, want := range map[int]int{20348: 70, 26100: 3, 0: 1} {
		if builds[build] != want {
			t.Errorf("%d settings for build %d, want %d", builds[build], build, want)
		}
	}
}

func TestEverySettingHasASource(t *testing.T) {
	seen := map[[4]string]bool{}
	for _, s := range switches.Table() {
		id := [4]string{s.Key, s.Name, s.Installer, strconv.Itoa(s.Windows)}
		if !strings.HasPrefix(s.Source, "https://") || s.Value == "" || s.Installer == "" || seen[id] {
			t.Errorf("%+v", s)
		}
		seen[id] = true
	}
}

// Two installers that contradict each other are both returned.
func TestAContradictionIsShown(t *testing.T) {
	both := switches.Known(switches.Policy, "1114842764", 20348)
	if len(both) != 2 || !switches.Contradict(both) {
		t.Errorf("%+v", both)
	}
	if one := switches.Known(strings.ToLower(switches.HNS), "hnsnpmrefresh", 20348); len(one) != 1 || switches.Contradict(one) {
		t.Errorf("%+v", one)
	}
	if other := switches.Known(switches.Policy, "1114842764", 26100); len(other) != 0 || switches.Contradict(other) {
		t.Errorf("Server 2025: %+v", other)
	}
}

package media

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/media/wim"
)

func TestProducts(t *testing.T) {
	for _, c := range []struct {
		build         int
		server        bool
		name, drivers string
	}{
		{14393, true, "Windows Server 2016", "2k16"},
		{17763, true, "Windows Server 2019", "2k19"},
		{20348, true, "Windows Server 2022", "2k22"},
		{26100, true, "Windows Server 2025", "2k25"},
		{25398, true, "", ""},
		{17763, false, "Windows 10", "w10"},
		{19045, false, "Windows 10", "w10"},
		{22000, false, "Windows 11", "w11"},
		{26100, false, "Windows 11", "w11"},
		{9600, false, "", ""},
		{0, false, "", ""},
	} {
		if name, drivers := productOf(c.build, c.server); name != c.name || drivers != c.drivers {
			t.Errorf("%+v: %q, %q", c, name, drivers)
		}
	}
}

func TestWordsOfEditions(t *testing.T) {
	for _, c := range []struct{ edition, installation, word string }{
		{"ServerStandard", "Server Core", "standard-core"},
		{"ServerStandardEval", "Server Core", "standard-core"},
		{"ServerStandardEval", "Server", "standard"},
		{"ServerDatacenter", "Server Core", "datacenter-core"},
		{"ServerDatacenterEval", "Server", "datacenter"},
		{"ServerTurbine", "Server", ""}, // Datacenter: Azure Edition
		{"ServerStandard", "Nano Server", ""},
		{"EnterpriseSEval", "Client", ""},
		{"", "", ""},
	} {
		got := word(wim.Image{Edition: c.edition, Installation: c.installation})
		if got != c.word || got != "" && !slices.Contains(Words(), got) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A word that would match two editions is the word of neither.
func TestAmbiguousWord(t *testing.T) {
	images := []wim.Image{
		{Index: 1, Edition: "ServerStandard", Installation: "Server"},
		{Index: 2, Edition: "ServerStandardEval", Installation: "Server"},
		{Index: 3, Edition: "ServerStandard", Installation: "Server Core"},
	}
	var words []string
	for _, image := range images {
		words = append(words, editionOf(image, images).Word)
	}
	if diff := cmp.Diff([]string{"", "", "standard-core"}, words); diff != "" {
		t.Error(diff)
	}
}

func TestSummaryOfSeveralEditions(t *testing.T) {
	m := Media{Editions: []Edition{
		{Architecture: "amd64", DefaultLanguage: "de-DE", Languages: []string{"de-DE"}, Version: "10.0.22000.1",
			Build: 22000},
		{Architecture: "arm64", DefaultLanguage: "en-US", Languages: []string{"de-DE", "en-US"},
			Version: "10.0.26100.10", Build: 26100},
		{Architecture: "amd64", DefaultLanguage: "de-DE", Version: "10.0.26100.9", Build: 26100, Evaluation: true},
	}}
	m.Editions[1].ServicePackBuild, m.Editions[2].ServicePackBuild = 10, 9
	m.summarize()
	m.Editions = nil
	want := Media{
		Version: "10.0.26100.10", Product: "Windows 11", DriverVersion: "w11", Evaluation: true,
		Languages: []string{"de-DE", "en-US"},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

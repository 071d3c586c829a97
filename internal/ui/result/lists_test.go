package result

import (
	"encoding/json"
	"testing"
	"time"
)

func TestWithListsReplacesNilListsAtEveryDepth(t *testing.T) {
	type part struct {
		Lists [][]string           `json:"lists"`
		Named map[string][]float64 `json:"named"`
		At    time.Time            `json:"at"`
		Raw   json.RawMessage      `json:"raw"`
	}
	type embedded struct {
		More []int `json:"more"`
	}
	type document struct {
		embedded
		Parts []part         `json:"parts"`
		One   *part          `json:"one"`
		None  *part          `json:"none"`
		Any   any            `json:"any"`
		Map   map[string]any `json:"map"`
	}
	before := document{Parts: []part{{Lists: [][]string{nil}}}, One: &part{Named: map[string][]float64{"a": nil}},
		Any: part{}}
	const empty = `{"lists":[],"named":{},"at":"0001-01-01T00:00:00Z","raw":null}`
	want := `{"more":[],"parts":[{"lists":[[]],"named":{},"at":"0001-01-01T00:00:00Z","raw":null}],` +
		`"one":{"lists":[],"named":{"a":[]},"at":"0001-01-01T00:00:00Z","raw":null},"none":null,"any":` + empty +
		`,"map":{}}`
	got, err := json.Marshal(withLists(before))
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, %v, want\n%s", got, err, want)
	}
	switch {
	case before.Parts[0].Lists[0] != nil:
		t.Errorf("before.Parts[0].Lists[0] = %v, want nil", before.Parts[0].Lists[0])
	case before.One.Named["a"] != nil:
		t.Errorf("before.One.Named[\"a\"] = %v, want nil", before.One.Named["a"])
	case before.Map != nil:
		t.Errorf("before.Map = %v, want nil; the document itself was changed", before.Map)
	}
}

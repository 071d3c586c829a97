package hyperv

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestFormsOfAList(t *testing.T) {
	for text, want := range map[string][]string{
		`["a","b"]`: {"a", "b"}, `["a"]`: {"a"}, `[]`: {}, `[null]`: {}, `null`: {}, `"a"`: {"a"},
		`{"value":["a","b"],"Count":2}`:                               {"a", "b"}, // PowerShell/PowerShell#3163, as Windows PowerShell 5.1 prints it
		"{\r\n \"value\":  [\r\n \"a\"\r\n ],\r\n \"Count\":  1\r\n}": {"a"},
		`{"value":[],"Count":0}`:                                      {},
	} {
		var got struct{ Names list[string] }
		if err := json.Unmarshal([]byte(`{"Names":`+text+`}`), &got); err != nil || !slices.Equal(got.Names, want) {
			t.Errorf("%s is %q, %v; want %q", text, got.Names, err, want)
		}
	}
	type named struct{ Name string }
	for text, want := range map[string][]named{
		`{"Name":"a"}`: {{"a"}}, `[{"Name":"a"},null]`: {{"a"}}, `{"value":{"Name":"a"},"Count":1}`: {{"a"}},
	} {
		var got list[named]
		if err := json.Unmarshal([]byte(text), &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{`{"Evil":1}`, `{"value":["a"]}`, `1`, `{"value":["a"],"Count":1,"more":2}`} {
		var got list[string]
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is %v", text, got)
		}
	}
}

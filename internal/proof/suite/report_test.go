package suite_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/swdt-dev/swdt/internal/proof/suite"
)

// broken are files that are no report, with the reason.
func broken() map[string]string {
	const passed = `[{"SpecReports":[{"State":"passed","LeafNodeType":"It","LeafNodeText":"`
	return map[string]string{
		"":                           "EOF",
		"[]":                         "has no list of specs",
		"null":                       "has no list of specs",
		"{}":                         "another structure",
		"[1]":                        "another structure",
		`[{"SpecReports":{}}]`:       "another structure",
		`[{"SpecReports":[`:          "EOF",
		`[{"SpecReports":[{"State"`:  "EOF",
		`[{"SpecReports":[{}]}]`:     `state ""`,
		`[{"SpecReports":["passed"]`: "cannot unmarshal",
		`[{"SpecReports":[{"State":"good","LeafNodeType":"It"}]}]`: `state "good"`,
		passed + strings.Repeat("x", 5000) + `"}]}]`:               "name",
	}
}

func TestBrokenReports(t *testing.T) {
	for text, want := range broken() {
		_, err := suite.ReadReport(strings.NewReader(text), "report.json")
		var e *suite.ReportError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "report.json ") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

const oneSpec = `[{"PreRunStats":{"TotalSpecs":3},"RunTime":1500000000,"SpecReports":[
{"LeafNodeType":"It","State":"skipped"},{"LeafNodeType":"It","State":"pending"},
{"LeafNodeType":"It","State":"failed","ContainerHierarchyTexts":["[sig-a]","B"],"LeafNodeText":"c","RunTime":1000000000,
 "LeafNodeLocation":{"FileName":"/go/k8s.io/kubernetes@v1.36.3/test/e2e/windows/density.go","LineNumber":7},
 "Failure":{"Message":"m","Location":{"FileName":"x.go","LineNumber":3}}}]}]`

func TestFieldsOfAResult(t *testing.T) {
	r, err := suite.ReadReport(strings.NewReader(oneSpec), "report.json")
	if err != nil {
		t.Fatal(err)
	}
	if r.Total != 3 || r.Filtered != 2 || r.Seconds != 1.5 || len(r.Results) != 1 {
		t.Fatalf("%+v", r)
	}
	got := r.Results[0]
	if got.Name != "[sig-a] B c" || got.File != "windows/density.go" || got.Line != 7 {
		t.Errorf("%+v", got.Spec)
	}
	if got.Message != "m" || got.Location != "x.go:3" || got.Seconds != 1 {
		t.Errorf("%+v", got)
	}
}

func FuzzReadReport(f *testing.F) {
	for text := range broken() {
		f.Add([]byte(text))
	}
	f.Add([]byte(oneSpec))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := suite.ReadReport(bytes.NewReader(text), "report.json")
		if err != nil {
			return
		}
		for _, result := range r.Results {
			if len(result.Name) > 4<<10 || result.Seconds < 0 {
				t.Errorf("%+v", result)
			}
			if !utf8.ValidString(result.Message) || !utf8.ValidString(result.Output) {
				t.Errorf("text that is no UTF-8: %+v", result)
			}
		}
	})
}

func FuzzShortened(f *testing.F) {
	f.Add("ä€\xff", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(2, min(limit, 1<<16))
		short := suite.Shortened(text, limit)
		if !utf8.ValidString(short) || len(short) > 3*limit+100 {
			t.Errorf("%q of %q, at most %d", short, text, limit)
		}
	})
}

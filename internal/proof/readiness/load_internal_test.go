package readiness

import (
	"strings"
	"testing"
)

func TestParseNamesEachProblem(t *testing.T) {
	const good = "cases:\n- {id: a-b, category: node, proves: It works, probe: started, why: It is new}\n"
	if all, err := parse([]byte(good)); err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	for text, want := range map[string]string{
		strings.Replace(good, "probe", "prob", 1):                           "prob",
		strings.Replace(good, "a-b", "A_b", 1):                              "small letters",
		strings.Replace(good, "node", "nodes", 1):                           "category",
		strings.Replace(good, "It is new", `""`, 1):                         "why is empty",
		strings.Replace(good, "It works", `""`, 1):                          "proves",
		strings.Replace(good, ", probe: started", "", 1):                    "either specs or a probe",
		strings.Replace(good, "started", "started, needs: [a-pony]", 1):     "a-pony",
		strings.Replace(good, "probe: started", "specs: [{texts: [x]}]", 1): "needs labels",
		good + good[len("cases:\n"):]:                                       "another case",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nthe error is %v, want one with %q", text, err, want)
		}
	}
}

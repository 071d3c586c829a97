//go:build oracles

package lint_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// random returns a pod in which any field has any of its values.
func random(r *rand.Rand) object {
	system := []string{"windows", "windows", "linux", ""}[r.IntN(4)]
	pod, spec, containers := newPod(system, 1+r.IntN(3))
	dense := 1 + r.IntN(12)
	choose := func(in object, fields []field) {
		for _, f := range fields {
			if r.IntN(dense) == 0 {
				value := f.values[r.IntN(len(f.values))]
				if options, ok := value.(object); ok && strings.HasSuffix(f.path, "windowsOptions") {
					merged := object{}
					for _, other := range []any{options, f.values[r.IntN(len(f.values))]} {
						more, _ := other.(object)
						for key, v := range more {
							merged[key] = v
						}
					}
					value = merged
				}
				set(in, f.path, value)
			}
		}
	}
	choose(spec, fieldsOfPods())
	for _, c := range containers {
		choose(c, fieldsOfContainers())
	}
	return pod
}

// TestAgreesWithValidation compares the rules of effect "rejected" with the code of Kubernetes' API server (strict decoding,
// defaults, pkg/registry/core/pod with pkg/apis/core/validation), and the rule of Pod Security with that version's
// policy. SWDT_ADMIT is a folder with a program for each version, which scripts/oracles.sh builds. No difference is
// accepted.
func TestAgreesWithValidation(t *testing.T) {
	const samples = 10_000
	r := rand.New(rand.NewPCG(42, 1))
	pods := onePerField()
	alone := len(pods)
	for range samples {
		pods = append(pods, random(r))
	}
	standards := []string{"privileged", "baseline", "restricted"}
	var questions bytes.Buffer
	encoder := json.NewEncoder(&questions)
	for i, pod := range pods {
		if err := encoder.Encode(object{"pod": pod, "standard": standards[i%3]}); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := filepath.Glob(filepath.Join(os.Getenv("SWDT_ADMIT"), "*"))
	if err != nil || len(programs) < 2 {
		t.Fatalf("%v: %v", programs, err)
	}
	answers := make([]linted, len(pods))
	for i, pod := range pods {
		answers[i] = lintOf(t, pod, standards[i%3])
	}
	for _, program := range programs {
		command := exec.CommandContext(t.Context(), program)
		command.Stdin, command.Stderr = bytes.NewReader(questions.Bytes()), os.Stderr
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(out))
		rejected, refused, differences := 0, 0, 0
		for i, pod := range pods {
			var answer struct {
				Fields, Others []string
				Refused        bool
			}
			if err := decoder.Decode(&answer); err != nil {
				t.Fatal(err)
			}
			fields, refuses := answers[i].fields, answers[i].refused
			if len(answer.Fields) > 0 {
				rejected++
			}
			if answer.Refused {
				refused++
			}
			unclear := len(answer.Others) > 0 && i < alone
			if isLinux(pod) { // swdt lint leaves the standards of these to others
				refuses = answer.Refused
			}
			if !slices.Equal(fields, answer.Fields) || refuses != answer.Refused || unclear {
				if differences++; differences < 10 {
					text, _ := json.Marshal(pod)
					t.Errorf("%s: %s\n lint: %v %t\nadmit: %v %t %v", filepath.Base(program), text, fields, refuses, answer.Fields, answer.Refused, answer.Others)
				}
			}
		}
		t.Logf("%d pods with a single field and %d random ones, %d rejected, %d refused by Pod Security, %d differences from Kubernetes %s", alone, samples,
			rejected, refused, differences, filepath.Base(program))
	}
}

func isLinux(pod object) bool {
	system, _ := pod["spec"].(object)["os"].(object)
	return system["name"] == "linux"
}

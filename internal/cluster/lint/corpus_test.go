package lint_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// This holds the form of a list, and reads no file of the corpus. The list of the corpus that the guide refers to has enough files of enough repositories, in two halves.
func TestTheListOfTheCorpus(t *testing.T) {
	text, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(\S+/\S+) [0-9a-f]{40} ([0-9a-f]{64}) \S`)
	repositories, hashes, tuned := map[string]bool{}, map[string]bool{}, 0
	for one := range strings.Lines(string(text)) {
		if strings.HasPrefix(one, "#") {
			continue
		}
		parts := line.FindStringSubmatch(one)
		if parts == nil || hashes[parts[2]] {
			t.Fatalf("%q", one)
		}
		repositories[parts[1]], hashes[parts[2]] = true, true
		if strings.ContainsAny(parts[2][63:], "02468ace") {
			tuned++
		}
	}
	if len(hashes) < 100 || len(repositories) < 20 || tuned < len(hashes)/3 || tuned > len(hashes)*2/3 {
		t.Errorf("%d files of %d repositories, %d for tuning", len(hashes), len(repositories), tuned)
	}
}

package redact_test

import (
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/format/redact/document"
)

// form is a text with a secret in one particular form.
type form struct {
	family, name string
	claimed      bool     // the guide promises that its secrets are redacted
	text         string   // with the secrets
	secrets      []string // the parts that must be redacted
	rest         []string // the parts around them that must stay, in order
}

// readCorpus reads testdata/corpus: see its README.
func readCorpus(t testing.TB) (all []form) {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(data), "\n=== ")
		for _, part := range parts[1:] {
			name, text, _ := strings.Cut(part, "\n")
			all = append(all, parseForm(t, parts[0], name, text+"\n"))
		}
	}
	return all
}

func parseForm(t testing.TB, family, name, text string) form {
	t.Helper()
	f := form{family: family, claimed: !strings.HasPrefix(name, "? "), name: strings.TrimPrefix(name, "? ")}
	text = strings.NewReplacer("␍", "\r", "¦", "").Replace(text)
	for {
		before, after, found := strings.Cut(text, "⟦")
		f.rest, f.text = append(f.rest, before), f.text+before
		if !found {
			break
		}
		secret, after, found := strings.Cut(after, "⟧")
		if !found || secret == "" {
			t.Fatalf("%s, %s: a secret has no end", family, name)
		}
		f.secrets, f.text, text = append(f.secrets, secret), f.text+secret, after
	}
	if len(f.secrets) == 0 {
		t.Fatalf("%s, %s: no secret is marked", family, name)
	}
	return f
}

// survivor returns a part of a secret that remains in the text: eight
// characters in a row, or all of a shorter one.
func (f form) survivor(clean string) string {
	around := strings.Join(f.rest, "\x00")
	for _, secret := range f.secrets {
		n := min(8, len(secret))
		for i := 0; i+n <= len(secret); i++ {
			if part := secret[i : i+n]; strings.Contains(clean, part) && !strings.Contains(around, part) {
				return part
			}
		}
	}
	return ""
}

// lost returns the parts around the secrets that are missing.
func (f form) lost(clean string) string {
	for _, piece := range f.rest {
		_, after, found := strings.Cut(clean, strings.Trim(piece, "'\"\\ "))
		if !found {
			return piece
		}
		clean = after
	}
	return ""
}

// rate is the result for one family of forms.
type rate struct{ forms, gone, whole, claimed, claimedGone, intact int }

func (r *rate) add(other rate) {
	r.forms += other.forms
	r.gone += other.gone
	r.whole += other.whole
	r.claimed += other.claimed
	r.claimedGone += other.claimedGone
	r.intact += other.intact
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

var update = flag.Bool("update", false, "write the table of rates")

// The acceptance limits of redaction: the minimum percentage of all forms, and
// every form that docs/guides/diag.md claims.
const (
	leastForms  = 400
	leastGone   = 98.0
	leastIntact = 98.0
)

func TestCorpus(t *testing.T) {
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	rates, all := map[string]*rate{}, rate{}
	for _, f := range readCorpus(t) {
		if rates[f.family] == nil {
			rates[f.family] = &rate{}
		}
		one := measure(t, f, r.String(f.text))
		clean, _ := document.Redact(r, []byte(f.text))
		if left := f.survivor(string(clean)); left == "" {
			one.whole = 1
		} else {
			t.Logf("%s, %s: %q is left in the document", f.family, f.name, left)
		}
		rates[f.family].add(one)
		all.add(one)
	}
	table := rateTable(rates, all)
	t.Log("\n" + table)
	if all.forms < leastForms {
		t.Errorf("the corpus has %d forms, want %d", all.forms, leastForms)
	}
	if got := percent(all.whole, all.forms); got < leastGone {
		t.Errorf("the secrets of %.1f %% of the forms go, want %.0f %%", got, leastGone)
	}
	if got := percent(all.intact, all.forms); got < leastIntact {
		t.Errorf("%.1f %% of the texts keep the rest, want %.0f %%", got, leastIntact)
	}
	checkTable(t, table)
}

// measure judges one form; a claimed form with a remaining secret is an error.
func measure(t *testing.T, f form, clean string) rate {
	t.Helper()
	one := rate{forms: 1}
	if f.claimed {
		one.claimed = 1
	}
	if left := f.survivor(clean); left != "" {
		if f.claimed {
			t.Errorf("%s, %s: %q is left in\n%s", f.family, f.name, left, clean)
		} else {
			t.Logf("not claimed: %s, %s: %q is left in\n%s", f.family, f.name, left, clean)
		}
	} else {
		one.gone, one.claimedGone = 1, one.claimed
	}
	if lost := f.lost(clean); lost != "" {
		t.Logf("%s, %s: %q is lost in\n%s", f.family, f.name, lost, clean)
	} else {
		one.intact = 1
	}
	return one
}

func rateTable(rates map[string]*rate, all rate) string {
	var families []string
	for family := range rates {
		families = append(families, family)
	}
	slices.Sort(families)
	var b strings.Builder
	b.WriteString("| family | forms | on the node | in a bundle | claimed | on the node | rest intact |\n" +
		"|---|--:|--:|--:|--:|--:|--:|\n")
	row := func(name string, r rate) {
		fmt.Fprintf(&b, "| %s | %d | %.1f %% | %.1f %% | %d | %.1f %% | %.1f %% |\n", name, r.forms,
			percent(r.gone, r.forms), percent(r.whole, r.forms), r.claimed, percent(r.claimedGone, r.claimed),
			percent(r.intact, r.forms))
	}
	for _, family := range families {
		row(family, *rates[family])
	}
	row("**all**", all)
	return b.String()
}

// checkTable compares the rates with the published ones.
func checkTable(t *testing.T, table string) {
	t.Helper()
	const path = "../../../docs/redaction.md"
	const begin, end = "<!-- rates: begin -->\n", "<!-- rates: end -->"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), begin)
	published, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the rates", path)
	}
	if published == table {
		return
	}
	if !*update {
		t.Fatalf("%s has other rates than the corpus shows; run: go test ./internal/format/redact -run TestCorpus "+
			"-update", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+table+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mostFalse is how many lines in a megabyte of ordinary logs may change.
const mostFalse = 1.0

// dumped matches a line of the dumps in which client-go logs bodies in protobuf. Each of them is redacted, since a secret
// in it cannot be found.
var dumped = regexp.MustCompile(`^\t[0-9a-f]{8}  ([0-9a-f]{2} ?)`)

// TestFalsePositives counts redactions in logs of a real kubelet and a real
// containerd that contain no secrets.
func TestFalsePositives(t *testing.T) {
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	changed, dumps, size := 0, 0, 0
	for _, log := range realLogs(t) {
		size += len(log)
		before, after := strings.Split(string(log), "\n"), strings.Split(string(r.Bytes(log)), "\n")
		if len(before) != len(after) {
			t.Fatalf("%d lines became %d", len(before), len(after))
		}
		for i, line := range before {
			switch {
			case dumped.MatchString(line):
				if dumps++; after[i] != line[:len("\t00000000  ")]+redact.Mark && !strings.Contains(line, "[truncated") {
					t.Errorf("%s\nof a dump became\n%s", line, after[i])
				}
			case line != after[i]:
				changed++
				t.Logf("%s\nbecame\n%s", line, after[i])
			}
		}
	}
	rate := float64(changed) / (float64(size) / 1e6)
	t.Logf("%d of %d bytes' lines changed: %.2f a megabyte; %d lines of dumps", changed, size, rate, dumps)
	if size < 1e6 {
		t.Errorf("the logs have %d bytes, want 1,000,000", size)
	}
	if rate >= mostFalse {
		t.Errorf("%.2f false positives a megabyte", rate)
	}
}

func realLogs(t testing.TB) (logs [][]byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/logs/*.gz")
	if err != nil || len(files) == 0 {
		t.Fatal("no logs", err)
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		log, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, log)
	}
	return logs
}

// BenchmarkRealLogs measures the speed on the logs that diag reads most.
func BenchmarkRealLogs(b *testing.B) {
	logs := realLogs(b)
	r, err := redact.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	for _, log := range logs {
		size += len(log)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, log := range logs {
			s := r.Stream()
			s.Next(log)
			s.End()
		}
	}
}

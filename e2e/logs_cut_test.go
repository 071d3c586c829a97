//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFollowThroughCutConnections follows a log of a Wine node over SSH while the test cuts the connection
// again and again.
func TestFollowThroughCutConnections(t *testing.T) {
	t.Parallel()
	info := wineSandbox(t)
	between := newProxy(t, info.Hostname, 0)
	text, err := os.ReadFile(info.Config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), info.Hostname, between.address())),
		0o600); err != nil {
		t.Fatal(err)
	}
	followThroughCuts(t, file, info.Prefix, between, 9)
}

// followThroughCuts follows a log of a Wine node. It cuts the connection twice a round, in the middle of lines
// and just after rotations. Each line is shown once, in the order of the log.
func followThroughCuts(t *testing.T, file, prefix string, between *proxy, rounds int) {
	t.Helper()
	const each = 3000
	log := growing{t: t, path: filepath.Join(prefix, "drive_c", "cut.log")}
	log.add("begin\n")
	f := follow(t, "logs", "-f", "--tail", "-1", "-o", "json", "-c", file, `file:C:\cut.log`)
	f.await(t, "begin")

	for round := range rounds {
		first := fmt.Sprintf("round %d begins", round)
		log.add(first + "\n")
		f.await(t, first) // so a connection exists
		var lines strings.Builder
		for i := range each {
			fmt.Fprintf(&lines, "line %d of round %d\n", i, round)
		}
		middle := lines.Len()/2 + round
		log.add(lines.String()[:middle])
		if round%2 == 0 {
			between.cut()
		}
		log.add(lines.String()[middle:])
		if round%3 == 2 {
			log.rotate(fmt.Sprintf("cut.%d.log", round))
		}
		between.cut()
	}
	log.add("end\n")
	f.await(t, "end")

	var shown []string
	for _, line := range f.end(t) {
		shown = append(shown, line.Text)
	}
	want := strings.Split(strings.TrimSuffix(log.written.String(), "\n"), "\n")
	if !slices.Equal(shown, want) {
		at := 0
		for at < min(len(shown), len(want)) && shown[at] == want[at] {
			at++
		}
		t.Errorf("%d lines were shown of %d; they differ at %d: %q, want %q\n%s", len(shown), len(want), at,
			shown[at:min(at+3, len(shown))], want[at:min(at+3, len(want))], f.stderr.String())
	}
	if lost := strings.Count(f.stderr.String(), "reconnecting"); lost < rounds {
		t.Errorf("the connection was lost %d times in %d rounds", lost, rounds)
	}
}

// growing is a log on the node.
type growing struct {
	t       *testing.T
	path    string
	written strings.Builder
}

func (g *growing) add(text string) {
	g.t.Helper()
	file, err := os.OpenFile(g.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		g.t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		g.t.Fatal(err)
	}
	g.written.WriteString(text)
}

// rotate renames the log within its folder.
func (g *growing) rotate(name string) {
	g.t.Helper()
	if err := os.Rename(g.path, filepath.Join(filepath.Dir(g.path), name)); err != nil {
		g.t.Fatal(err)
	}
}

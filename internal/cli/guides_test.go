package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/testing/registrytest"
)

// TestGuides pastes the $ lines of the README and of each guide into one shell, in
// their order, with a sandbox as the node, and compares the output that the page
// shows with what the commands print. Comments in the Markdown steer it, each for
// the block of code below it:
//
//	<!-- guide: sandbox up --name win-1 -->  a sandbox for what follows; it becomes SWDT_CONFIG
//	<!-- guide: registry FILE -->            a mirror with the published indexes of FILE; it becomes MIRROR
//	<!-- guide: run COMMAND -->              a command that the page does not show
//	<!-- guide: exit 4 -->                   the block's last command ends so
//	<!-- guide: other output, REASON -->     the commands run, and print something else here
//	<!-- guide: skip, REASON -->             the commands cannot run on a sandbox
//	<!-- guide: skip the rest, REASON -->    nor those of the blocks after it
//	<!-- guide: go on -->                    until here
func TestGuides(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the guides' commands are for a POSIX shell")
	}
	pages, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var skipped []string
	ran := 0
	t.Cleanup(func() { // after all pages
		t.Logf("%d commands ran; %d were skipped:\n%s", ran, len(skipped), strings.Join(skipped, "\n"))
	})
	for _, page := range append([]string{"../../README.md"}, pages...) {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel() // each page has its own home, and its commands wait most of the time
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			g := parseGuide(t, string(text))
			g.paste(t)
			mu.Lock()
			defer mu.Unlock()
			ran += len(g.commands)
			for _, line := range g.skipped {
				skipped = append(skipped, filepath.Base(page)+line)
			}
		})
	}
}

// guideCommand is one command to paste.
type guideCommand struct {
	line  int // line of the page; 0: the page does not show it
	text  string
	exit  int
	shown []string // output
	loose bool     // the command prints other output here
}

type guide struct {
	commands []guideCommand
	skipped  []string
}

// steer holds the instructions of the comments above a block.
type steer struct {
	exit  int
	loose bool
	skip  string
	rest  bool // skip also applies to the blocks after it
}

var guideComment = regexp.MustCompile(`^<!-- guide: (.+) -->$`)

// parseGuide finds the commands in a page's blocks of code.
func parseGuide(t *testing.T, page string) *guide {
	t.Helper()
	g, next, inBlock, fenced := &guide{}, steer{}, false, false
	first := 0 // command of the block
	end := func() {
		if inBlock && len(g.commands) > first {
			g.commands[len(g.commands)-1].exit = next.exit
		}
		if inBlock && next.rest {
			next = steer{skip: next.skip, rest: true}
		} else if inBlock {
			next = steer{}
		}
		inBlock = false
	}
	for i, line := range strings.Split(page, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```"):
			if fenced {
				end()
			}
			fenced = !fenced
			inBlock, first = fenced, len(g.commands)
			continue
		case fenced:
			code = line
		case indented:
			if !inBlock {
				inBlock, first = true, len(g.commands)
			}
		case line == "" && inBlock: // the command may continue after it
			continue
		default:
			end()
			if m := guideComment.FindStringSubmatch(line); m != nil {
				g.steer(t, i+1, m[1], &next)
			}
			continue
		}
		g.code(i+1, code, next, len(g.commands) > first)
	}
	end()
	return g
}

func (g *guide) steer(t *testing.T, line int, text string, next *steer) {
	t.Helper()
	word, rest, _ := strings.Cut(text, " ")
	switch {
	case word == "sandbox":
		name := "sandbox"
		if _, after, ok := strings.Cut(rest, "--name "); ok {
			name, _, _ = strings.Cut(after, " ")
		}
		g.commands = append(g.commands,
			guideCommand{text: "swdt sandbox " + rest},
			guideCommand{text: "export SWDT_CONFIG=$HOME/.local/state/swdt/sandbox/" + name + "/node.yaml"},
			guideCommand{text: "! [ -e $HOME/.local/state/swdt/sandbox/" +
				name + "/admin.conf ] || cp $HOME/.local/state/swdt/sandbox/" + name + "/admin.conf ."})
	case word == "registry": // a mirror with the published indexes of a file
		served := registrytest.Start(t)
		served.PutRecorded(t, rest)
		g.commands = append(g.commands, guideCommand{text: "export MIRROR=http://" + served.Host})
	case word == "run":
		g.commands = append(g.commands, guideCommand{text: rest})
	case word == "exit":
		code, err := strconv.Atoi(rest)
		if err != nil {
			t.Fatalf("line %d: exit %q", line, rest)
		}
		next.exit = code
	case strings.HasPrefix(text, "other output, "):
		next.loose = true
	case text == "go on":
		*next = steer{}
	case strings.HasPrefix(text, "skip the rest, "):
		next.skip, next.rest = strings.TrimPrefix(text, "skip the rest, "), true
	case strings.HasPrefix(text, "skip, "):
		next.skip = strings.TrimPrefix(text, "skip, ")
	default:
		t.Fatalf("line %d: <!-- guide: %s --> is not understood", line, text)
	}
}

// code handles a line of a block: a command, or output of the command before it.
func (g *guide) code(line int, code string, s steer, after bool) {
	command, isCommand := strings.CutPrefix(code, "$ ")
	switch {
	case isCommand && s.skip != "":
		g.skipped = append(g.skipped, fmt.Sprintf(":%d: %s (%s)", line, command, s.skip))
	case isCommand:
		g.commands = append(g.commands, guideCommand{line: line, text: command, loose: s.loose})
	case s.skip == "" && after:
		last := &g.commands[len(g.commands)-1]
		last.shown = append(last.shown, code)
	}
}

// paste runs all commands in one shell.
func (g *guide) paste(t *testing.T) {
	if len(g.commands) == 0 {
		return
	}
	work, home := t.TempDir(), t.TempDir()
	defer endSandboxes(t, filepath.Join(home, ".local", "state", "swdt", "sandbox"))
	results := t.TempDir()
	var script strings.Builder
	for i, c := range g.commands {
		file := filepath.Join(results, strconv.Itoa(i))
		fmt.Fprintf(&script, "{ %s\n} >%s.out 2>&1 </dev/null\ncode=$?; echo $code >%s.code; (exit $code)\n",
			c.text, file, file)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = work
	shell.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR="+results,
		"SWDT_CONFIG=", "KUBECONFIG=", "SSH_AUTH_SOCK=", "GORACE=atexit_sleep_ms=0", "NO_COLOR=1")
	if err := shell.Run(); ctx.Err() != nil {
		t.Errorf("the guide does not come to an end: %v", err)
	}
	hashes := pairs{printed: map[string]string{}, shown: map[string]string{}}
	for i, c := range g.commands {
		c.compare(t, filepath.Join(results, strconv.Itoa(i)), hashes)
	}
}

// compare checks a command's exit code, and its output against the page. The hashes of the page pair with those that
// were printed.
func (c guideCommand) compare(t *testing.T, file string, hashes pairs) {
	code, err := os.ReadFile(file + ".code")
	if err != nil {
		t.Errorf("line %d: $ %s: it did not run", c.line, c.text)
		return
	}
	output, err := os.ReadFile(file + ".out")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(code)); got != strconv.Itoa(c.exit) {
		t.Errorf("line %d: $ %s: exit code %s, want %d:\n%s", c.line, c.text, got, c.exit, output)
		return
	}
	if c.loose {
		return
	}
	for _, shown := range c.shown {
		if strings.Trim(shown, " …") == "" {
			continue
		}
		pattern := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(shape(shown)), "…", ".*") + `$`)
		var same, paired bool
		for line := range strings.Lines(string(output)) {
			if pattern.MatchString(shape(line)) {
				same, paired = true, paired || hashes.pair(shown, line)
			}
		}
		if !same {
			t.Errorf("line %d: $ %s: the page shows\n  %s\nand it printed\n%s", c.line, c.text, shown, output)
			return
		}
		if !paired {
			t.Errorf("line %d: $ %s: the page shows the hashes of another run than above:\n  %s\nit printed\n%s", c.line,
				c.text, shown, output)
		}
	}
}

// pairs holds the hashes of a page: what was printed for a hash of the page, and what the page shows for a printed
// one.
type pairs struct{ printed, shown map[string]string }

var shortHash = regexp.MustCompile(`^[0-9a-f]{6}$`)

// pair pairs the hashes of a line of the page with those of a printed line. It reports false, and pairs nothing, if
// one of them has another pair.
func (p pairs) pair(shown, printed string) bool {
	ours, theirs := strings.Fields(shown), strings.Fields(printed)
	if strings.Contains(shown, "…") || len(ours) != len(theirs) {
		return true // their words are not side by side
	}
	found := map[string]string{}
	for i, word := range ours {
		if !shortHash.MatchString(word) || !shortHash.MatchString(theirs[i]) {
			continue
		}
		if p.printed[word] != "" && p.printed[word] != theirs[i] || p.shown[theirs[i]] != "" && p.shown[theirs[i]] != word {
			return false
		}
		found[word] = theirs[i]
	}
	for word, other := range found {
		p.printed[word], p.shown[other] = other, word
	}
	return true
}

var hexWord = regexp.MustCompile(`^[0-9a-fA-F]{6,}$`)

// shape returns a line without the parts that differ between runs: words with a digit,
// and the widths of columns. A word with … matches anything.
func shape(line string) string {
	words := strings.Fields(line)
	for i, word := range words {
		switch {
		case strings.Contains(word, "…"):
			words[i] = "…"
		case strings.ContainsAny(word, "0123456789") || hexWord.MatchString(word):
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hinshun/vt10x"
)

// The pace of the recording, which is not that of the run.
const (
	keystroke  = 30 * time.Millisecond
	beforeRun  = 400 * time.Millisecond
	afterRun   = 1600 * time.Millisecond
	longestGap = 500 * time.Millisecond
	tick       = 10 * time.Millisecond
)

// cast returns the asciicast of a session.
func cast(session []command, outputs [][]chunk) []byte {
	var file bytes.Buffer
	now := time.Duration(0)
	write := func(kind, data string) {
		text, err := json.Marshal(data)
		if err != nil {
			panic(err) // a string can be encoded
		}
		fmt.Fprintf(&file, "[%.2f, %q, %s]\n", now.Seconds(), kind, text)
	}
	fmt.Fprintf(&file, `{"version": 2, "width": %d, "height": %d, "title": "swdt on a sandbox", "env": {"TERM": "xterm-256color"}}`+"\n",
		columns, rows)
	first := true
	for i, command := range session {
		if command.hidden {
			continue
		}
		// The first command is there with its output at once: pictures that do not move show the first frame.
		keystroke, beforeRun, longestGap := keystroke, beforeRun, longestGap
		if first {
			keystroke, beforeRun, longestGap = 0, 0, 0
		}
		first = false
		if command.title != "" {
			write("o", "\x1b[36m# "+command.title+"\x1b[0m\r\n")
			now += beforeRun
		}
		write("m", command.text)
		write("o", "\x1b[32m$\x1b[0m ")
		for _, r := range command.text {
			now += keystroke
			write("o", string(r))
		}
		now += beforeRun
		write("o", "\r\n")
		for _, c := range outputs[i] {
			now += min(c.after, longestGap).Round(tick)
			write("o", string(c.data))
		}
		if len(outputs[i]) > 0 {
			now += afterRun
		}
	}
	write("o", "")
	return file.Bytes()
}

// pageMark is the line of the page after which the recorded part begins.
const pageMark = "<!-- recorded by scripts/record.sh -->"

// writePage replaces the recorded part of a Markdown page.
func writePage(file string, session []command, outputs [][]chunk, home string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, _, found := strings.Cut(string(text), pageMark+"\n")
	if !found {
		return fmt.Errorf("%s has no line %s", file, pageMark)
	}
	var page strings.Builder
	page.WriteString(head + pageMark + "\n")
	for i, command := range session {
		if command.hidden {
			fmt.Fprintf(&page, "\n<!-- guide: run %s -->\n", command.text)
			continue
		}
		if command.title != "" {
			fmt.Fprintf(&page, "\n%s:\n", command.title)
		}
		if command.exit != 0 {
			fmt.Fprintf(&page, "\n<!-- guide: exit %d -->\n", command.exit)
		}
		if command.title != "" || command.exit != 0 {
			page.WriteString("\n")
		}
		fmt.Fprintf(&page, "    $ %s\n", command.text)
		for _, line := range lines(joined(outputs[i])) {
			// The test's home has another name.
			page.WriteString(strings.TrimRight("    "+strings.ReplaceAll(line, home, "…"), " ") + "\n")
		}
	}
	return os.WriteFile(file, []byte(page.String()), 0o644)
}

// lines returns the lines that a terminal shows at last, as long as they are.
func lines(output []byte) []string {
	terminal := vt10x.New(vt10x.WithSize(400, 400))
	_, _ = terminal.Write(output) // it is memory
	var shown []string
	for line := range strings.Lines(terminal.String()) {
		shown = append(shown, strings.TrimRight(line, " \n"))
	}
	for len(shown) > 0 && shown[len(shown)-1] == "" {
		shown = shown[:len(shown)-1]
	}
	return shown
}

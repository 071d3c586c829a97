// Command licenses collects the licences of all modules that the linker can put into swdt's
// programs, compares them with allowed.txt, and holds THIRD_PARTY_NOTICES against them.
//
//	licenses [-write]
//
// It runs at the root of the repository. Without -write it fails if the file is stale. A
// licence that is not in allowed.txt, or a text that the classifier does not know, fails in
// both cases.
//
// main.go compares, linked.go lists the modules and finds their texts, classify.go names the
// licences of a text, and notices.go writes the file.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const (
	noticesFile = "THIRD_PARTY_NOTICES"
	allowedFile = "tools/licenses/allowed.txt"
)

func main() {
	write := flag.Bool("write", false, "write "+noticesFile+" instead of comparing it")
	flag.Parse()
	if err := run(os.Stdout, *write); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, write bool) error {
	modules, err := linked(programs)
	if err != nil {
		return err
	}
	names, err := newClassifier()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(allowedFile)
	if err != nil {
		return err
	}
	problems := judge(modules, names, allowed(string(text)))
	for _, problem := range problems {
		fmt.Fprintln(out, problem)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems: remove the module, or add its licence to %s if the project may ship it",
			len(problems), allowedFile)
	}
	return settle(notices(modules), write)
}

// settle writes the notices, or compares them with the file.
func settle(wanted []byte, write bool) error {
	if write {
		return os.WriteFile(noticesFile, wanted, 0o644)
	}
	found, err := os.ReadFile(noticesFile)
	if err != nil {
		return err
	}
	if !bytes.Equal(found, wanted) {
		return errors.New(noticesFile + " does not have the licences of the modules that are linked now: run `make generate`")
	}
	return nil
}

// allowed returns the SPDX identifiers of allowed.txt: the first word of each line that is
// neither empty nor a comment.
func allowed(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			names = append(names, words[0])
		}
	}
	return names
}

// judge names the licences of each module and returns what forbids to ship it, a line each.
func judge(modules []*module, names *classifier, allowed []string) []string {
	var problems []string
	for _, m := range modules {
		if len(m.licenses()) == 0 {
			problems = append(problems, m.name+": it has no file with a licence")
		}
		for _, t := range m.texts {
			if !t.license {
				continue
			}
			t.names = names.of(t.content)
			if len(t.names) == 0 {
				problems = append(problems, fmt.Sprintf("%s: %s has no licence that is known", m.name, t.path))
			}
			for _, name := range t.names {
				if !slices.Contains(allowed, name) {
					problems = append(problems, fmt.Sprintf("%s: %s has the licence %s, which is not in the list of allowed ones",
						m.name, t.path, name))
				}
			}
		}
	}
	return problems
}

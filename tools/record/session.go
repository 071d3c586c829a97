package main

import (
	"fmt"
	"strconv"
	"strings"
)

// command is a command of a session.
type command struct {
	title string // printed above it; "": none
	text  string
	exit  int // its exit code
	// hidden reports that neither the recording nor the page shows the command.
	hidden bool
}

func parse(text string) ([]command, error) {
	var session []command
	title := ""
	for i, line := range strings.Split(text, "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
		case kind == "#":
			title = rest
		case kind == "$":
			// The page's comment on an exit code is about the last command of a block.
			if title == "" && len(session) > 0 && session[len(session)-1].exit != 0 {
				return nil, fmt.Errorf("line %d: a command after one that fails needs a title", i+1)
			}
			session = append(session, command{title: title, text: rest})
			title = ""
		case kind == "~":
			session = append(session, command{text: rest, hidden: true})
		case kind == "!" && len(session) > 0:
			code, err := strconv.Atoi(rest)
			if err != nil {
				return nil, fmt.Errorf("line %d: %q is no exit code", i+1, rest)
			}
			session[len(session)-1].exit = code
		default:
			return nil, fmt.Errorf("line %d: %q does not begin with #, $, ~ or ! and a space", i+1, line)
		}
	}
	if len(session) == 0 {
		return nil, fmt.Errorf("no line begins with $")
	}
	return session, nil
}

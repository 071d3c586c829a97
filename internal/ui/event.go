package ui

import "encoding/json"

// Event writes a value as one line of JSON, for tools that follow the story;
// nothing where the story is for people.
func (s *Story) Event(value any) {
	if !s.options.JSON {
		return
	}
	line, err := json.Marshal(value)
	if err != nil { // a mistake of ours, which must not end what is at work
		s.line(levelWarn, "", "tell an event: "+err.Error())
		return
	}
	s.write(append(line, '\n'))
}

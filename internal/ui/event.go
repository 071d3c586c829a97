package ui

import "encoding/json"

// Event writes a value as one line of JSON, for tools that read the story. If the story is
// for people, Event writes nothing.
func (s *Story) Event(value any) {
	if !s.options.JSON {
		return
	}
	line, err := json.Marshal(value)
	if err != nil { // the cause is a bug of swdt; it must not end the command
		s.line(levelWarn, "", "report an event: "+err.Error())
		return
	}
	s.write(append(line, '\n'))
}

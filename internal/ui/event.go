package ui

import "encoding/json"

// Event writes a value as one line of JSON, for tools that read the story. If the story is
// for people, Event writes nothing.
func (s *Story) Event(value any) {
	if !s.options.JSON {
		return
	}
	line, err := json.Marshal(value)
	if err != nil { // only a bug of swdt causes this error, which must not end the command
		s.line(levelWarn, "", "report an event: "+err.Error())
		return
	}
	s.write(append(line, '\n'))
}

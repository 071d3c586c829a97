package ui

import "encoding/json"

// Event writes a value as one line of JSON, for tools that read the story. It writes nothing
// to a story for people.
func (s *Story) Event(value any) {
	if !s.options.JSON {
		return
	}
	line, err := json.Marshal(value)
	if err != nil { // a bug of swdt, which must not end the work
		s.line(levelWarn, "", "report an event: "+err.Error())
		return
	}
	s.write(append(line, '\n'))
}

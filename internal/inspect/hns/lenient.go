package hns

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
)

// Unreadable is an object of which at least one field has a form that swdt does not know. The object is also in the list
// of its kind, without these fields, unless it is no JSON object at all.
type Unreadable struct {
	Kind  platform.NetworkKind `json:"kind"`
	ID    string               `json:"id"`    // "" if the document has none
	Error string               `json:"error"` // names the fields
	Raw   json.RawMessage      `json:"raw"`   // null if the document is no JSON
}

// String returns KIND ID: ERROR.
func (u Unreadable) String() string {
	return fmt.Sprintf("%s %s: %s", u.Kind, cmp.Or(u.ID, "without an ID"), u.Error)
}

// lenient decodes a document into a struct. If a field has another type than the struct's, lenient leaves it out and
// decodes the others. The error names the fields left out. ok is false if the document is no JSON object.
func lenient(document []byte, into any) (ok bool, err error) {
	if json.Unmarshal(document, into) == nil {
		return true, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return false, err
	}
	var problems []string
	for name, value := range fields {
		field, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err == nil {
			err = json.Unmarshal(field, into)
		}
		var wrong *json.UnmarshalTypeError
		switch {
		case errors.As(err, &wrong):
			problems = append(problems, fmt.Sprintf("%s is a %s", cmp.Or(wrong.Field, name), wrong.Value))
		case err != nil:
			problems = append(problems, name+": "+err.Error())
		}
	}
	slices.Sort(problems)
	return true, errors.New(strings.Join(problems, ", "))
}

// idOf returns the ID of a document in upper case, or "" if it has none.
func idOf(document []byte) string {
	var object struct{ ID string }
	if ok, _ := lenient(document, &object); !ok { // an ID of another type is none
		return ""
	}
	return upper(object.ID)
}

// rawOf returns a document as a part of JSON: a text if it is no JSON itself.
func rawOf(document []byte) json.RawMessage {
	if json.Valid(document) {
		return append(json.RawMessage(nil), document...)
	}
	text, err := json.Marshal(string(document[:min(len(document), 1000)]))
	if err != nil {
		return nil
	}
	return text
}

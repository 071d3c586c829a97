package hyperv

import (
	"bytes"
	"encoding/json"
)

// list is a list in the JSON of ConvertTo-Json. Windows PowerShell 5.1 writes a list that Select-Object computes in
// several forms: as a list, as an object {"value":[…],"Count":2} (PowerShell/PowerShell#3163), as the only element
// without a list (#3222), and as null. List decodes all of them, without null elements, and refuses unknown fields.
type list[T any] []T

// UnmarshalJSON decodes any of the forms.
func (l *list[T]) UnmarshalJSON(text []byte) error {
	var wrapped struct {
		Value json.RawMessage `json:"value"`
		Count *int
	}
	if strict(text, &wrapped) == nil && wrapped.Value != nil && wrapped.Count != nil {
		text = wrapped.Value
	}
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] != '[' {
		text = append(append([]byte{'['}, text...), ']')
	}
	var all []*T
	if err := strict(text, &all); err != nil {
		return err
	}
	*l = list[T]{}
	for _, one := range all {
		if one != nil {
			*l = append(*l, *one)
		}
	}
	return nil
}

func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

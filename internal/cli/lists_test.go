package cli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui/result"
)

// Every declared document without values is printed with [] for each of its lists.
func TestNoDeclaredDocumentPrintsNullForAList(t *testing.T) {
	for command, declared := range outputs() {
		for _, m := range append(declared.modes, mode{document: declared.document}) {
			if m.document == nil {
				continue
			}
			var out bytes.Buffer
			if err := (result.Writer{Format: result.JSON}).Write(&out, m.document); err != nil {
				t.Fatal(err)
			}
			var fields map[string]any
			if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
				t.Fatal(err)
			}
			of := reflect.TypeOf(m.document)
			for i := range of.NumField() {
				field := of.Field(i)
				if field.Type.Kind() != reflect.Slice || !field.IsExported() {
					continue
				}
				if name := field.Tag.Get("json"); name != "-" && fields[name] == nil {
					t.Errorf("swdt %s %s prints null for the list %s", command, m.flags, name)
				}
			}
		}
	}
}

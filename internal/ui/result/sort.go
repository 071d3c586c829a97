package result

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/swdt-dev/swdt/internal/ui/order"
)

// Sorter sorts the rows of documents by a JSONPath. The rows are the elements of each list of a document whose elements
// have the path. The zero value leaves documents as they are.
type Sorter struct {
	path       *jsonpath.JSONPath
	descending bool
}

// NewSorter parses the JSONPath of a choice. It fails if no row of document's type can have the path.
func NewSorter(choice order.Choice, document any) (Sorter, error) {
	path, err := parsePath(choice.Path)
	if err != nil {
		return Sorter{}, fmt.Errorf("%w; write it as in --sort-by={.name}", err)
	}
	first := firstField.FindStringSubmatch(choice.Path)
	if first != nil && !rowsHave(reflect.TypeOf(document), first[1], 0) {
		return Sorter{}, fmt.Errorf("no row of the result has the field %s; -o json shows the fields", first[1])
	}
	return Sorter{path, choice.Descending}, nil
}

// firstField matches the first field of a plain JSONPath.
var firstField = regexp.MustCompile(`^\{?\.(\w+)`)

// maxDepth bounds the search in types that contain themselves.
const maxDepth = 12

// rowsHave reports whether a document of the type can have a list whose elements have the field.
func rowsHave(t reflect.Type, field string, depth int) bool {
	if t == nil || depth > maxDepth || writesItself(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Slice:
		return hasField(t.Elem(), field) || rowsHave(t.Elem(), field, depth+1)
	case reflect.Pointer, reflect.Map:
		return rowsHave(t.Elem(), field, depth+1)
	case reflect.Interface:
		return true // any type
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && rowsHave(f.Type, field, depth+1) {
				return true
			}
		}
	}
	return false
}

// hasField reports whether the JSON of a type has the field.
func hasField(t reflect.Type, field string) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || writesItself(t) {
		return t.Kind() == reflect.Interface || t.Kind() == reflect.Map || writesItself(t)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			if hasField(f.Type, field) {
				return true
			}
		case name == field, name == "" && f.IsExported() && f.Name == field:
			return true
		}
	}
	return false
}

// sort sorts the lists of a document, which no other value refers to.
func (s Sorter) sort(document any) error {
	if s.path == nil || document == nil {
		return nil
	}
	return s.sortIn(reflect.ValueOf(document))
}

func (s Sorter) sortIn(v reflect.Value) error {
	if !v.IsValid() || writesItself(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() || field.Anonymous {
				if err := s.sortIn(v.Field(i)); err != nil {
					return err
				}
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := s.sortIn(v.Index(i)); err != nil {
				return err
			}
		}
		return s.sortList(v)
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if err := s.sortIn(entry.Value()); err != nil {
				return err
			}
		}
	case reflect.Pointer, reflect.Interface:
		return s.sortIn(v.Elem())
	}
	return nil
}

// sortList sorts a list, unless none of its elements has the path.
func (s Sorter) sortList(list reflect.Value) error {
	if kind := list.Type().Elem().Kind(); kind != reflect.Struct && kind != reflect.Pointer && kind != reflect.Map &&
		kind != reflect.Interface {
		return nil
	}
	texts := make([]string, list.Len())
	for i := range texts {
		row, err := plain(list.Index(i).Interface())
		if err != nil {
			return err
		}
		if texts[i], err = s.valueOf(row); err != nil {
			return err
		}
	}
	copied := reflect.MakeSlice(list.Type(), list.Len(), list.Len())
	reflect.Copy(copied, list)
	for to, from := range order.By(texts, s.descending) {
		list.Index(to).Set(copied.Index(from))
	}
	return nil
}

// valueOf returns the value that a row has at the path, or "".
func (s Sorter) valueOf(row any) (string, error) {
	if _, isObject := row.(map[string]any); !isObject {
		return "", nil
	}
	found, err := s.path.FindResults(row)
	if err != nil {
		return "", fmt.Errorf("sort the rows: %w", err)
	}
	for _, values := range found {
		for _, value := range values {
			if !value.IsValid() || !value.CanInterface() || value.Interface() == nil {
				continue
			}
			if number, is := value.Interface().(float64); is {
				return strconv.FormatFloat(number, 'f', -1, 64), nil
			}
			return fmt.Sprint(value.Interface()), nil
		}
	}
	return "", nil
}

package result

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// withLists returns a copy of document in which no list and no map is nil, so that -o
// json prints [] and {} and not null for them. Values whose types write their JSON
// themselves stay unchanged. withLists also copies the values to which pointers refer,
// since a document may share memory with code that still runs.
func withLists(document any) any {
	if document == nil {
		return nil
	}
	filled := reflect.New(reflect.TypeOf(document)).Elem()
	filled.Set(reflect.ValueOf(document))
	fillLists(filled)
	return filled.Interface()
}

// fillLists replaces the nil lists and maps in v by empty ones. No other value refers
// to v yet.
func fillLists(v reflect.Value) {
	if writesItself(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() || field.Anonymous {
				fillLists(v.Field(i))
			}
		}
	case reflect.Slice:
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			fillLists(own.Index(i))
		}
		v.Set(own)
	case reflect.Map:
		own := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entry := v.MapRange(); entry.Next(); {
			own.SetMapIndex(entry.Key(), filledCopy(entry.Value()))
		}
		v.Set(own)
	case reflect.Pointer:
		if !v.IsNil() && v.CanSet() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(filledCopy(v.Elem()))
			v.Set(own)
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(filledCopy(v.Elem()))
		}
	}
}

func filledCopy(v reflect.Value) reflect.Value {
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	fillLists(own)
	return own
}

// writesItself reports whether a type has its own method that writes it as JSON.
func writesItself(t reflect.Type) bool {
	for _, method := range []reflect.Type{reflect.TypeFor[json.Marshaler](),
		reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(method) || reflect.PointerTo(t).Implements(method) {
			return true
		}
	}
	return false
}
